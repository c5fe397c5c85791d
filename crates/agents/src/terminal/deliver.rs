//! How words get into a program that was made for hands: paste, pause, Enter, and then proof.
//!
//! Pure: time and what is known go in, what to do comes out. It must never type when the program is
//! not ready for words, and never take silence for consent.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use woodward_core::MessageId;

/// Between a paste and Enter: some programs take an Enter that comes at once for a part of the paste.
const BEFORE_ENTER: Duration = Duration::from_millis(500);
/// How long to wait for proof after each Enter.
const PROOF: [Duration; 4] = [
    Duration::from_secs(2),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
];
/// After the last of them, proof that comes late is still proof.
const LATE: Duration = Duration::from_secs(10);

/// What to do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Do {
    /// Paste the words of this message.
    Paste { id: Option<MessageId>, text: String },
    /// Press Enter.
    Enter,
    /// It can't be delivered.
    GiveUp { id: Option<MessageId> },
}

#[derive(Debug)]
struct Words {
    /// `None` for the prompt itself.
    id: Option<MessageId>,
    text: String,
}

#[derive(Debug)]
enum Stage {
    Pasted(Instant),
    Entered { at: Instant, times: usize },
}

/// Words on their way, one after the other.
#[derive(Debug, Default)]
pub(super) struct Delivery {
    queue: VecDeque<Words>,
    under_way: Option<(Words, Stage)>,
    /// Words that were typed and never taken: nobody knows where they are, so nothing more is typed.
    astray: Option<String>,
}

impl Delivery {
    /// Something to be said.
    pub(super) fn add(&mut self, id: Option<MessageId>, text: String) {
        let text = cleaned(&text);
        self.queue.push_back(Words { id, text });
    }

    /// Whether there is nothing on its way.
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.under_way.is_none()
    }

    /// All that is not proven, given up at once.
    pub(super) fn abandon(&mut self) -> Vec<MessageId> {
        let under_way = self.under_way.take().map(|(words, _)| words);
        let all = under_way.into_iter().chain(self.queue.drain(..));
        all.filter_map(|words| words.id).collect()
    }

    /// What is to be done now. `ready`: the program waits for words, and no dialog is open;
    /// `enter_ready`: pressing Enter can't answer a dialog.
    pub(super) fn step(&mut self, now: Instant, ready: bool, enter_ready: bool) -> Option<Do> {
        let Some((words, stage)) = &mut self.under_way else {
            if self.astray.is_some() {
                let id = self.queue.pop_front()?.id;
                return Some(Do::GiveUp { id });
            }
            if !ready {
                return None;
            }
            let words = self.queue.pop_front()?;
            let paste = Do::Paste {
                id: words.id,
                text: words.text.clone(),
            };
            self.under_way = Some((words, Stage::Pasted(now)));
            return Some(paste);
        };
        match stage {
            Stage::Pasted(at) if now >= *at + BEFORE_ENTER && enter_ready => {
                *stage = Stage::Entered { at: now, times: 1 };
                Some(Do::Enter)
            }
            Stage::Entered { at, times } => {
                let wait = PROOF.get(*times - 1).copied().unwrap_or(LATE);
                if now < *at + wait {
                    return None;
                }
                if *times > PROOF.len() {
                    let id = words.id;
                    self.astray = Some(std::mem::take(&mut words.text));
                    self.under_way = None;
                    return Some(Do::GiveUp { id });
                }
                if *times == PROOF.len() {
                    *times += 1;
                    *at = now;
                    return None;
                }
                if !enter_ready {
                    return None;
                }
                *at = now;
                *times += 1;
                Some(Do::Enter)
            }
            Stage::Pasted(_) => None,
        }
    }

    /// The program has taken these words. Says whether they are those under way, and whose they are.
    /// Words that a person had begun to type may stand before or behind them.
    pub(super) fn proven(&mut self, taken: &str) -> Option<Option<MessageId>> {
        if self.astray.as_ref().is_some_and(|text| has(taken, text)) {
            self.astray = None;
        }
        let (words, stage) = self.under_way.as_ref()?;
        let entered = matches!(stage, Stage::Entered { .. });
        let is_it = same(&words.text, taken) || (entered && has(taken, &words.text));
        self.under_way.take_if(|_| is_it).map(|(words, _)| words.id)
    }
}

fn has(taken: &str, sent: &str) -> bool {
    let (taken, sent) = (plain(taken), plain(sent));
    !sent.is_empty() && (taken.starts_with(&sent) || taken.ends_with(&sent))
}

/// Whether two texts are the same words: programs turn tabs into spaces, and cut what is empty at the
/// ends.
pub(super) fn same(sent: &str, taken: &str) -> bool {
    plain(sent) == plain(taken)
}

fn plain(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    text.replace('\t', "    ").trim().to_owned()
}

/// The bytes of a paste: what could end it early, or is a key, is left out.
pub(super) fn paste(text: &str) -> Vec<u8> {
    let mut bytes = b"\x1b[200~".to_vec();
    bytes.extend(cleaned(text).into_bytes());
    bytes.extend_from_slice(b"\x1b[201~");
    bytes
}

/// A text without control characters other than line ends and tabs.
pub(super) fn cleaned(text: &str) -> String {
    text.replace("\r\n", "\n")
        .chars()
        .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u128) -> MessageId {
        MessageId::new(uuid::Uuid::from_u128(n))
    }

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn nothing_is_typed_before_the_program_is_ready() {
        let (mut delivery, start) = (Delivery::default(), Instant::now());
        delivery.add(Some(id(1)), "hello".into());
        assert_eq!(delivery.step(start, false, false), None);
        assert!(matches!(
            delivery.step(start, true, true),
            Some(Do::Paste { .. })
        ));
        assert_eq!(delivery.step(start + ms(499), true, true), None);
        assert_eq!(delivery.step(start + ms(500), true, true), Some(Do::Enter));
        assert_eq!(delivery.proven("another"), None);
        assert_eq!(delivery.proven("hello\n"), Some(Some(id(1))));
        assert!(delivery.is_empty());
    }

    #[test]
    fn a_dialog_that_opens_meanwhile_gets_no_enter() {
        let (mut delivery, start) = (Delivery::default(), Instant::now());
        delivery.add(Some(id(1)), "hello".into());
        delivery.step(start, true, true);
        assert_eq!(delivery.step(start + ms(5_000), false, false), None);
        assert_eq!(
            delivery.step(start + ms(9_000), false, true),
            Some(Do::Enter)
        );
        assert_eq!(delivery.step(start + ms(12_000), false, false), None);
    }

    #[test]
    fn enter_is_pressed_again_and_then_it_is_given_up() {
        let (mut delivery, start) = (Delivery::default(), Instant::now());
        delivery.add(Some(id(1)), "one".into());
        delivery.add(Some(id(2)), "two".into());
        let mut done = Vec::new();
        for at in 0..2_000_u64 {
            if let Some(deed) = delivery.step(start + ms(at * 10), true, true) {
                done.push((at * 10, deed));
            }
        }
        let enters: Vec<u64> = done
            .iter()
            .filter(|(_, deed)| *deed == Do::Enter)
            .map(|(at, _)| *at)
            .collect();
        assert_eq!(enters, [500, 2_500, 3_000, 4_000]);
        let given_up: Vec<Do> = done.iter().rev().take(2).map(|(_, d)| d.clone()).collect();
        // Where the first words are is not known, so the second are not typed after them.
        assert_eq!(
            given_up,
            [
                Do::GiveUp { id: Some(id(2)) },
                Do::GiveUp { id: Some(id(1)) }
            ]
        );
        delivery.add(Some(id(3)), "three".into());
        assert_eq!(delivery.proven("one"), None);
        assert!(matches!(
            delivery.step(start + ms(30_000), true, true),
            Some(Do::Paste { .. })
        ));
    }

    #[test]
    fn a_paste_can_not_be_ended_by_its_own_words() {
        let bytes = paste("a\x1b[201~\rrm\x03 b\tc\n");
        assert_eq!(bytes, b"\x1b[200~a[201~rm b\tc\n\x1b[201~");
        assert!(same("a\tb\r\nc ", "a    b\nc"));
        assert!(!same("a b", "ab"));
    }
}
