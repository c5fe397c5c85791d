//! Lines of a program's output, bounded.

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// The longest line that is kept whole.
pub(crate) const LINE_MAX: usize = 16 << 20;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A whole one, without its end. What is not UTF-8 is replaced.
    Whole(String),
    /// One that was too long to be kept: its length.
    TooLong(u64),
}

/// Reads lines. What comes after the last line's end, when the program dies in the middle of a line,
/// is a line too.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    from: BufReader<R>,
    line: Vec<u8>,
    dropped: u64,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(from: R) -> Self {
        Self {
            from: BufReader::with_capacity(64 << 10, from),
            line: Vec::new(),
            dropped: 0,
        }
    }

    /// The next line; `None` at the end. Safe to be dropped and called again.
    pub(crate) async fn next(&mut self) -> Option<Line> {
        loop {
            let bytes = match self.from.fill_buf().await {
                Ok(bytes) => bytes,
                Err(_) => return self.rest(),
            };
            if bytes.is_empty() {
                return self.rest();
            }
            let (part, used, ended) = match bytes.iter().position(|byte| *byte == b'\n') {
                Some(end) => (&bytes[..end], end + 1, true),
                None => (bytes, bytes.len(), false),
            };
            if self.dropped > 0 || self.line.len() + part.len() > LINE_MAX {
                self.dropped += (part.len() + self.line.len()) as u64;
                self.line = Vec::new();
            } else {
                self.line.extend_from_slice(part);
            }
            self.from.consume(used);
            if ended {
                return Some(self.take());
            }
        }
    }

    fn rest(&mut self) -> Option<Line> {
        (!self.line.is_empty() || self.dropped > 0).then(|| self.take())
    }

    fn take(&mut self) -> Line {
        let line = std::mem::take(&mut self.line);
        match std::mem::take(&mut self.dropped) {
            0 => {
                let mut text = String::from_utf8_lossy(&line).into_owned();
                if text.ends_with('\r') {
                    text.pop();
                }
                Line::Whole(text)
            }
            length => Line::TooLong(length),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(bytes: &[u8]) -> Vec<Line> {
        let mut lines = Lines::new(bytes);
        let mut found = Vec::new();
        while let Some(line) = lines.next().await {
            found.push(line);
        }
        found
    }

    fn whole(text: &str) -> Line {
        Line::Whole(text.into())
    }

    #[tokio::test]
    async fn half_a_line_at_the_end_is_a_line() {
        assert_eq!(
            all(b"{\"a\":1}\r\n\n{\"b\"").await,
            [whole("{\"a\":1}"), whole(""), whole("{\"b\"")]
        );
        assert!(all(b"").await.is_empty());
    }

    #[tokio::test]
    async fn a_line_too_long_is_counted_and_the_next_one_is_read() {
        let mut bytes = vec![b'x'; LINE_MAX + 5];
        bytes.extend_from_slice(b"\nnext\n");
        assert_eq!(
            all(&bytes).await,
            [Line::TooLong(LINE_MAX as u64 + 5), whole("next")]
        );
    }
}
