//! ntfy: one POST to a topic, the text as body, the rest as headers.

use hyper::header::{AUTHORIZATION, HeaderName};
use woodward_core::notice::Level;

use crate::http::Post;
use crate::{Message, Secret, SendError};

/// ntfy turns longer texts into attachments.
const BYTES_MAX: usize = 4_000;

pub(crate) fn request(
    url: &Secret,
    token: Option<&Secret>,
    message: &Message,
) -> Result<Post, SendError> {
    let (priority, tag) = match message.level() {
        Level::Urgent => ("5", "question"),
        Level::High => ("4", "warning"),
        Level::Normal => ("3", "eyes"),
        Level::Low => ("2", "white_check_mark"),
    };
    let mut headers = vec![
        (HeaderName::from_static("title"), encoded(&message.title())),
        (HeaderName::from_static("priority"), priority.to_owned()),
        (HeaderName::from_static("tags"), tag.to_owned()),
    ];
    if let Some(token) = token {
        headers.push((AUTHORIZATION, format!("Bearer {}", token.load()?)));
    }
    let mut body = message.plain();
    let end = (0..=BYTES_MAX.min(body.len()))
        .rev()
        .find(|at| body.is_char_boundary(*at));
    body.truncate(end.unwrap_or(0));
    Ok(Post {
        url: url.load()?,
        headers,
        body: body.into_bytes(),
        content_type: "text/plain; charset=utf-8",
    })
}

/// A header carries ASCII; anything else goes as an encoded word (RFC 2047), which ntfy reads.
fn encoded(text: &str) -> String {
    let line: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if line.is_ascii() {
        return line;
    }
    let mut word = String::from("=?utf-8?Q?");
    for byte in line.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => word.push(char::from(byte)),
            _ => word.push_str(&format!("={byte:02X}")),
        }
    }
    word.push_str("?=");
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_always_ascii_and_one_line() {
        assert_eq!(encoded("till: fix\nfailed"), "till: fix failed");
        assert_eq!(encoded("é!"), "=?utf-8?Q?=C3=A9=21?=");
    }
}
