//! A request in one form for all dialects: who said what, and which tools are offered.

use super::script;
use serde_json::Value;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The agent program, for its user or for itself.
    User,
    /// The model.
    Model,
}

/// A piece of a message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// Plain text.
    Text(String),
    /// The model's call of the tool with this name.
    Call(String),
    /// What a tool answered.
    Result(String),
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said, in order.
    pub parts: Vec<Part>,
}

/// A tool that the agent offers.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// The namespace it is offered in, if any.
    pub namespace: Option<String>,
    /// The JSON schema of its input; `Null` when it takes free text.
    pub schema: Value,
}

/// A request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversation {
    /// The model that is asked for.
    pub model: String,
    /// Instructions outside the messages.
    pub system: String,
    /// What was said so far.
    pub messages: Vec<Message>,
    /// What the model may call.
    pub tools: Vec<Tool>,
    /// The JSON schema that the reply must have, if one is asked for.
    pub schema: Option<Value>,
    /// Whether events are wanted rather than one answer.
    pub is_streamed: bool,
}

/// A place in a conversation; a later one is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) message: usize,
    pub(super) part: usize,
    offset: usize,
}

impl Conversation {
    /// All texts of the user, in order.
    pub fn user_texts(&self) -> impl Iterator<Item = &str> {
        self.user_parts().map(|(_, text)| text)
    }

    /// All that tools answered, in order.
    pub fn results(&self) -> impl Iterator<Item = &str> {
        let parts = self.messages.iter().flat_map(|message| &message.parts);
        parts.filter_map(|part| match part {
            Part::Result(text) => Some(text.as_str()),
            _ => None,
        })
    }

    fn user_parts(&self) -> impl Iterator<Item = (Place, &str)> {
        let messages = self.messages.iter().enumerate();
        messages
            .filter(|(_, message)| message.role == Role::User)
            .flat_map(|(index, message)| {
                let parts = message.parts.iter().enumerate();
                parts.filter_map(move |(part, content)| match content {
                    Part::Text(text) => Some((
                        Place {
                            message: index,
                            part,
                            offset: 0,
                        },
                        text.as_str(),
                    )),
                    _ => None,
                })
            })
    }

    /// The last directive, and where it stands.
    pub(super) fn directive(&self) -> Option<(Place, String)> {
        let found = self.user_parts().filter_map(|(place, text)| {
            let (offset, steps) = script::directive(text)?;
            Some((Place { offset, ..place }, steps))
        });
        found.last()
    }

    /// The last place where the user says this.
    pub(super) fn last_said(&self, wanted: &str) -> Option<Place> {
        let found = self.user_parts().filter_map(|(place, text)| {
            let offset = text.rfind(wanted)?;
            Some(Place { offset, ..place })
        });
        found.last()
    }

    /// The last text of the user that no agent added by itself, as far as one can tell: agents
    /// wrap what they add in tags, or put it beside the answers of tools.
    pub(super) fn last_prompt(&self) -> Option<Place> {
        let is_prompt = |place: &Place, text: &str| {
            let parts = &self.messages[place.message].parts;
            let has_result = parts.iter().any(|part| matches!(part, Part::Result(_)));
            !has_result && !text.trim_start().starts_with('<')
        };
        self.user_parts()
            .filter(|(place, text)| is_prompt(place, text))
            .map(|(place, _)| place)
            .last()
    }

    /// What was said after a place, with who said it.
    pub(super) fn after(&self, place: Place) -> impl Iterator<Item = (&Message, &Part)> {
        let messages = self.messages.iter().enumerate().skip(place.message);
        messages.flat_map(move |(index, message)| {
            let first = match index == place.message {
                true => place.part + 1,
                false => 0,
            };
            message
                .parts
                .iter()
                .skip(first)
                .map(move |part| (message, part))
        })
    }
}
