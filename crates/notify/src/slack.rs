//! Slack's incoming webhooks.

use serde_json::json;

use crate::http::Post;
use crate::{Message, Secret, SendError};

pub(crate) fn request(url: &Secret, message: &Message) -> Result<Post, SendError> {
    let body = json!({ "text": text(message) });
    Ok(Post {
        url: url.load()?,
        headers: Vec::new(),
        body: body.to_string().into_bytes(),
        content_type: "application/json",
    })
}

fn text(message: &Message) -> String {
    let mut text = format!("*{}*", escaped(&message.title()));
    for line in message.lines() {
        text.push('\n');
        text.push_str(&escaped(&line.text));
        if let Some(command) = line.command {
            text.push_str(&format!("\n`{}`", escaped(&command.replace('`', "'"))));
        }
    }
    text
}

/// The three characters that Slack gives a meaning, mentions of everybody among them.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use woodward_core::notice::Reason;

    use super::*;
    use crate::message::tests::{message, notice};

    #[test]
    fn nobody_can_be_called_by_an_agents_text() {
        let failed = notice("fix", Reason::Failed, "<!channel> & co");
        let text = text(&message(vec![failed]));
        assert_eq!(
            text,
            "*till: fix failed*\n&lt;!channel&gt; &amp; co\n`woodward show fix`"
        );
    }
}
