//! Gemini CLI forgets a conversation that is resumed in the minute in which it began: it opens a file
//! whose name is the minute and the id, and writes a fresh beginning over it. So that minute is waited for.

use std::path::{Path, PathBuf};
use std::time::Duration;

use woodward_core::Timestamp;

use crate::adapters::common::{head, now};
use crate::event::Event;
use crate::spec::Spec;
use crate::wire::Wire;

/// Waits as long as Gemini CLI would write over the conversation.
pub(super) async fn wait_for_another_minute(id: &str, spec: &Spec, wire: &Wire) {
    let Some(home) = home(spec) else { return };
    if !is_of_this_minute(&home, id, now()) {
        return;
    }
    let text =
        String::from("Gemini CLI can't resume a conversation in the minute in which it began");
    wire.say(Event::Note { text }).await;
    let left = 60_000 - now().0.rem_euclid(60_000);
    let left = u64::try_from(left).unwrap_or(60_000);
    tokio::time::sleep(Duration::from_millis(left + 100)).await;
}

fn home(spec: &Spec) -> Option<PathBuf> {
    if spec.own_config {
        return Some(spec.home.join("config"));
    }
    let named = std::env::var_os("GEMINI_CLI_HOME").or_else(|| std::env::var_os("HOME"));
    named.map(PathBuf::from)
}

fn is_of_this_minute(home: &Path, id: &str, now: Timestamp) -> bool {
    let name = format!("session-{}-{}.jsonl", minute(now), head(id, 8));
    let projects = std::fs::read_dir(home.join(".gemini/tmp"));
    let mut projects = projects.into_iter().flatten().flatten();
    projects.any(|project| project.path().join("chats").join(&name).exists())
}

/// `2026-11-16T04-04`, in UTC.
fn minute(now: Timestamp) -> String {
    let minutes = now.0.div_euclid(60_000);
    let days = minutes.div_euclid(1440);
    // The proleptic Gregorian calendar, with years that begin in March.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute) = (minutes.rem_euclid(1440) / 60, minutes.rem_euclid(60));
    format!("{year:04}-{month:02}-{day:02}T{hour:02}-{minute:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minutes_are_named_as_gemini_names_them() {
        assert_eq!(minute(Timestamp(0)), "1970-01-01T00-00");
        assert_eq!(minute(Timestamp(1_794_801_844_427)), "2026-11-16T04-04");
        assert_eq!(minute(Timestamp(1_709_251_199_999)), "2024-02-29T23-59");
    }

    #[test]
    fn only_a_conversation_of_this_minute_is_in_danger() {
        let home = tempfile::tempdir().unwrap();
        let chats = home.path().join(".gemini/tmp/shop/chats");
        std::fs::create_dir_all(&chats).unwrap();
        std::fs::write(chats.join("session-2026-11-16T04-04-db925230.jsonl"), "").unwrap();
        let id = "db925230-6888-4978-bb46-68a11a76c5a8";
        let is = |now: i64| is_of_this_minute(home.path(), id, Timestamp(now));
        assert!(is(1_794_801_844_427));
        assert!(!is(1_794_801_844_427 + 60_000));
        assert!(!is_of_this_minute(
            home.path(),
            "x",
            Timestamp(1_794_801_844_427)
        ));
    }
}
