//! A stand-in for the APIs of language models, so that real agent programs can be tested offline.
//!
//! It speaks Anthropic Messages, OpenAI Chat Completions, OpenAI Responses and Gemini on a free
//! loopback port. Agents are pointed at it by their own settings and do what the test's prompt
//! says. It must never think, never reach beyond loopback, and never remember a conversation:
//! what it answers follows from the request and the script alone (how often a fault was served is
//! the only exception).
//!
//! # Use
//!
//! ```text
//! use woodward_testkit::model_api::ModelApi;
//!
//! let api = ModelApi::start();
//! println!("ANTHROPIC_BASE_URL={}", api.url()); // OpenAI's dialects: api.openai_url()
//! // … start an agent with the prompt "stand-in: write a.txt=hello; commit add a" …
//! let request = api.expect("the task", |request| request.user_says("write a.txt"));
//! ```
//!
//! [`ModelApi::start`] runs in a thread of its own and ends when it is dropped, with every
//! connection. `stand-in-model`, a program of this crate, is the same for a shell
//! (`cargo run -p woodward-testkit --bin stand-in-model -- --help`).
//!
//! # What a prompt can say
//!
//! The last block of lines with `stand-in:` in the user's texts is the directive. Lines directly
//! below each other are one block; what stands before `stand-in:` in a line does not matter.
//! Steps are separated by `;`. In texts `\n`, `\t`, `\;`, `\|` and `\\` mean what they say.
//!
//! | step | what the model does |
//! |---|---|
//! | `write FILE=TEXT` | writes a file with the agent's tool for that, or with its shell |
//! | `shell COMMAND` | runs a command with the agent's shell tool |
//! | `commit MESSAGE` | the same with `git add -A && git commit -m MESSAGE` |
//! | `ask QUESTION\|A\|B` | asks with the agent's tool for questions; as plain text where it has none |
//! | `call TOOL {JSON}` | calls that tool with exactly these arguments |
//! | `with STEP` | does one of the above in the same reply as the step before it |
//! | `say TEXT` | says something before the next step, or at the end instead of `Done.` |
//! | `slow SECONDS` | begins the next reply at once and ends it that much later |
//! | `usage input=N output=N cached=N` | what the next reply claims to have used ([`Usage::default`] otherwise) |
//! | `fault KIND [reset=SECONDS] [times=N] [retry=no]` | fails in place of the next reply |
//!
//! The first five are *actions*: each becomes one tool call, and the number of tool results after
//! the directive says which is next. The others belong to the reply in front of which they stand.
//!
//! Kinds of faults: any HTTP status from 400 to 599 (`401`, `429`, `500`, `529`, … with the
//! dialect's own error body, and on 429 its headers with the reset time), `overflow` (400: the
//! context is too long), `stall` (never answers), `cut` (half a stream, then a broken connection)
//! and `garbage` (200 with no JSON). `times=2` faults the first two times and then goes on;
//! without it the fault stays. `retry=no` adds `x-should-retry: false`.
//!
//! # What a script can say
//!
//! A [`Script`] serves conversations whose prompts say nothing, for a whole server. Its lines hold
//! steps; a line `when TEXT` begins the steps for conversations in which a user's text contains
//! TEXT, and lines before the first such are for all others. `#` begins a comment line. Whatever
//! stands last in the conversation counts, directive or TEXT.
//!
//! ```text
//! write a.txt=hello; commit add a
//! when but a check fails
//! write a.txt=better
//! commit repair a
//! ```
//!
//! # What it answers without being told
//!
//! A request without tools (titles, names of branches, commit messages, classifiers) gets a plain
//! sentence, or the least JSON that fits the schema it asks for; a commit message is the
//! directive's own. Aider, which has no tools, gets SEARCH/REPLACE blocks for all `write`s at
//! once. A conversation with no directive gets `Done.`. After [`STEPS_MAX`] tool results nothing
//! but text is answered, so that no agent runs for ever.

mod conversation;
mod decide;
mod dialect;
mod faults;
mod record;
mod reply;
mod script;
mod server;
mod tools;

pub use conversation::{Conversation, Message, Part, Role, Tool};
pub use decide::STEPS_MAX;
pub use dialect::Dialect;
pub use record::Recorded;
pub use reply::Usage;
pub use script::{Script, ScriptError};
pub use server::{ModelApi, StartError};
