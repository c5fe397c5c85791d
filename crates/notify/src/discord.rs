//! Discord's webhooks.

use serde_json::json;

use crate::http::Post;
use crate::{Message, Secret, SendError};

/// Discord refuses longer texts.
const CHARS_MAX: usize = 2_000;

pub(crate) fn request(url: &Secret, message: &Message) -> Result<Post, SendError> {
    // Nobody is ever called by a text that an agent wrote.
    let body = json!({ "content": text(message), "allowed_mentions": { "parse": [] } });
    Ok(Post {
        url: url.load()?,
        headers: Vec::new(),
        body: body.to_string().into_bytes(),
        content_type: "application/json",
    })
}

fn text(message: &Message) -> String {
    let mut text = format!("**{}**", message.title());
    for line in message.lines() {
        let mut more = format!("\n{}", line.text);
        if let Some(command) = line.command {
            more.push_str(&format!("\n`{}`", command.replace('`', "'")));
        }
        if text.chars().count() + more.chars().count() > CHARS_MAX - 2 {
            text.push_str("\n…");
            break;
        }
        text.push_str(&more);
    }
    text.chars().take(CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use woodward_core::notice::Reason;

    use super::*;
    use crate::message::tests::{message, notice};

    #[test]
    fn a_digest_fits() {
        let many = (0..10)
            .map(|n| notice(&format!("t{n}"), Reason::Failed, &"é".repeat(900)))
            .collect();
        let text = text(&message(many));
        assert!(text.chars().count() <= CHARS_MAX);
        assert!(text.ends_with('…'));
    }
}
