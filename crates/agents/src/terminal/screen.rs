//! What the terminal shows, and what programs may ask of a terminal.
//!
//! Clients are painted from here, so what a program prints can set no clipboard, ask no terminal
//! of a person's and leave no mode behind. It must survive any bytes.

use std::num::NonZeroU16;
use std::panic::AssertUnwindSafe;

use vt100::capture::{BasicFormattedCaptureState, RowContents, basic_formatted_to_plain};
use vt100::{Callbacks, Parser, Screen};

use super::pty::Size;

const TITLE_MAX: usize = 300;
/// How many lines that have left the screen wait for whoever keeps them; more are lost.
const SCROLLED_MAX: usize = 2_000;

/// The screen, its title, and the answers that the terminal owes to the program.
pub(super) struct Model {
    parser: Parser<Ear>,
    size: Size,
}

/// What is heard besides what is shown.
#[derive(Clone, Default)]
struct Ear {
    title: String,
    answers: Vec<u8>,
    /// Lines that have left the screen at its top.
    scrolled: Vec<String>,
}

impl Callbacks for Ear {
    fn on_scroll(&mut self, row: RowContents<'_>, alternate_screen: bool) {
        if alternate_screen || self.scrolled.len() >= SCROLLED_MAX {
            return;
        }
        let mut text = String::new();
        let mut state = BasicFormattedCaptureState::new();
        if row.write_formatted_basic(&mut text, &mut state).is_ok() {
            self.scrolled.push(plain(&text));
        }
    }

    fn set_window_title(&mut self, _: &mut Screen, title: &[u8]) {
        let title = String::from_utf8_lossy(title);
        self.title = title
            .chars()
            .filter(|c| !c.is_control())
            .take(TITLE_MAX)
            .collect();
    }

    fn unhandled_csi(
        &mut self,
        screen: &mut Screen,
        first: Option<u8>,
        _: Option<u8>,
        params: &[&[u16]],
        last: char,
    ) {
        let param = params.first().and_then(|p| p.first()).copied();
        match (first, param, last) {
            // Where is the cursor? Codex does not start without an answer.
            (None, Some(6), 'n') => {
                let (row, col) = screen.cursor_position();
                let answer = format!("\x1b[{};{}R", row + 1, col + 1);
                self.answers.extend_from_slice(answer.as_bytes());
            }
            (None, Some(5), 'n') => self.answers.extend_from_slice(b"\x1b[0n"),
            // What are you? A plain colour terminal; also the sign that nothing else is answered.
            (None, None | Some(0), 'c') => self.answers.extend_from_slice(b"\x1b[?62;22c"),
            _ => {}
        }
    }

    fn unhandled_osc(&mut self, _: &mut Screen, params: &[&[u8]]) {
        match params {
            [b"10", b"?"] => {
                let answer = b"\x1b]10;rgb:dddd/dddd/dddd\x1b\\";
                self.answers.extend_from_slice(answer);
            }
            [b"11", b"?"] => {
                let answer = b"\x1b]11;rgb:0000/0000/0000\x1b\\";
                self.answers.extend_from_slice(answer);
            }
            _ => {}
        }
    }
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model").field("size", &self.size).finish()
    }
}

/// A row without its attributes.
fn plain(row: &str) -> String {
    let text: String = basic_formatted_to_plain(row).collect();
    text.trim_end().to_owned()
}

fn parser(size: Size, ear: Ear) -> Parser<Ear> {
    let whole = |n: u16| NonZeroU16::new(n).unwrap_or(NonZeroU16::MIN);
    Parser::new_with_callbacks(whole(size.rows), whole(size.cols), 0, ear)
}

impl Model {
    pub(super) fn new(size: Size) -> Self {
        Self {
            parser: parser(size, Ear::default()),
            size,
        }
    }

    /// Takes what the program printed; gives back what the terminal answers.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Vec<u8> {
        let parser = &mut self.parser;
        let taken = std::panic::catch_unwind(AssertUnwindSafe(|| parser.process(bytes)));
        if taken.is_err() {
            // A screen that the model can't draw costs the picture, not the conversation.
            let ear = self.parser.callbacks().clone();
            self.parser = self::parser(self.size, ear);
        }
        std::mem::take(&mut self.parser.callbacks_mut().answers)
    }

    pub(super) fn resize(&mut self, size: Size) {
        self.size = size;
        let whole = |n: u16| NonZeroU16::new(n).unwrap_or(NonZeroU16::MIN);
        let parser = &mut self.parser;
        let resized = std::panic::catch_unwind(AssertUnwindSafe(|| {
            parser
                .screen_mut()
                .set_size(whole(size.rows), whole(size.cols));
        }));
        if resized.is_err() {
            let ear = self.parser.callbacks().clone();
            self.parser = self::parser(size, ear);
        }
    }

    /// The lines that have left the screen since the last time, as plain text.
    pub(super) fn take_scrolled(&mut self) -> Vec<String> {
        std::mem::take(&mut self.parser.callbacks_mut().scrolled)
    }

    /// What it shows as plain text.
    pub(super) fn text(&self) -> String {
        self.parser.screen().contents()
    }

    /// The window's title.
    pub(super) fn title(&self) -> &str {
        &self.parser.callbacks().title
    }

    /// Whether the program takes a paste as one piece.
    pub(super) fn takes_paste(&self) -> bool {
        self.parser.screen().bracketed_paste()
    }

    /// What a client must print to show what is shown now, if it last showed `before`.
    pub(super) fn paint(&self, before: Option<&Painted>, client: Size) -> (Painted, String) {
        let screen = self.parser.screen();
        let title = self.title().to_owned();
        let fits = client == self.size;
        let mut picture = match before {
            Some(before) if fits && before.fits && before.screen.size() == screen.size() => {
                screen.state_diff(&before.screen)
            }
            _ if fits => format!("\x1b[H\x1b[2J{}", screen.state_formatted()),
            _ => cropped(screen, client),
        };
        if before.is_none_or(|before| before.title != title) {
            picture.push_str(&format!("\x1b]2;{title}\x07"));
        }
        let painted = Painted {
            screen: screen.clone(),
            title,
            fits,
        };
        (painted, picture)
    }
}

/// The upper left part, for those whose own terminal has another size.
fn cropped(screen: &Screen, client: Size) -> String {
    let (rows, cols) = screen.size();
    let shown = Size {
        rows: client.rows.min(rows.get()),
        cols: client.cols.min(cols.get()),
    };
    let mut picture = String::from("\x1b[?25l\x1b[m\x1b[2J");
    let all = screen.rows_formatted(0, shown.cols);
    for (row, text) in all.take(usize::from(shown.rows)).enumerate() {
        picture.push_str(&format!("\x1b[{};1H\x1b[m{text}", row + 1));
    }
    let (row, col) = screen.cursor_position();
    if row < shown.rows && col < shown.cols && !screen.hide_cursor() {
        picture.push_str(&format!("\x1b[m\x1b[{};{}H\x1b[?25h", row + 1, col + 1));
    }
    picture.push_str(&screen.input_mode_formatted());
    picture
}

/// What a client shows.
pub(super) struct Painted {
    screen: Screen,
    title: String,
    fits: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> Model {
        Model::new(Size { rows: 5, cols: 30 })
    }

    #[test]
    fn a_title_is_heard_and_never_controls_a_persons_terminal() {
        let mut model = model();
        model.take(b"\x1b]0;\xe2\x9c\xb3 Claude\x07");
        assert_eq!(model.title(), "✳ Claude");
        model.take(b"\x1b]2;next\x1b\\");
        assert_eq!(model.title(), "next");
    }

    #[test]
    fn the_terminal_answers_what_programs_ask_of_it() {
        let mut model = model();
        assert_eq!(model.take(b"ab\x1b[6n"), b"\x1b[1;3R");
        assert_eq!(model.take(b"\x1b[c"), b"\x1b[?62;22c");
        assert_eq!(model.take(b"\x1b[?u"), b"");
    }

    #[test]
    fn lines_that_leave_the_screen_are_kept_as_plain_text() {
        let mut model = model();
        model.take(b"\x1b[31mone\x1b[m\r\ntwo\x1b]52;c;eA==\x07\r\n3\r\n4\r\n5");
        assert!(model.take_scrolled().is_empty());
        model.take(b"\r\n6\r\n7");
        assert_eq!(model.take_scrolled(), ["one", "two"]);
        assert!(model.take_scrolled().is_empty());
        model.take(b"\n".repeat(3 * SCROLLED_MAX).as_slice());
        assert_eq!(model.take_scrolled().len(), SCROLLED_MAX);
    }

    #[test]
    fn a_client_that_comes_late_sees_the_same_as_one_that_watched() {
        let mut model = model();
        let size = model.size;
        let (before, mut watched) = model.paint(None, size);
        model.take(b"hello \x1b[31mred\x1b[m\r\nworld\x1b]52;c;c2VjcmV0\x07");
        let (_, more) = model.paint(Some(&before), size);
        watched.push_str(&more);
        let (_, late) = model.paint(None, size);
        for picture in [watched, late] {
            assert!(!picture.contains("]52;"), "{picture:?}");
            let mut client = Model::new(size);
            client.take(picture.as_bytes());
            assert_eq!(client.text(), "hello red\nworld");
        }
    }

    #[test]
    fn a_smaller_client_sees_the_upper_left_part() {
        let mut model = model();
        model.take(b"0123456789012345678901234\r\nsecond");
        let client = Size { rows: 4, cols: 20 };
        let (_, picture) = model.paint(None, client);
        let mut seen = Model::new(client);
        seen.take(picture.as_bytes());
        assert_eq!(seen.text(), "01234567890123456789\nsecond");
    }

    #[test]
    fn hostile_bytes_break_nothing() {
        let mut model = model();
        let mut byte = 7_u32;
        for _ in 0..200 {
            let bytes: Vec<u8> = (0..500)
                .map(|_| {
                    byte = byte.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    if byte.is_multiple_of(5) {
                        0x1b
                    } else {
                        (byte >> 24) as u8
                    }
                })
                .collect();
            model.take(&bytes);
            model.resize(Size::sane(
                (byte >> 20) as u16 % 60,
                (byte >> 8) as u16 % 90,
            ));
            model.paint(None, Size::default());
        }
    }
}
