//! Handing a person's answer to the agent's program.
//!
//! The answer goes into the run's inbox first and is recorded as given only when the run's host says
//! that the program took it. An answer that was not taken must never reach the agent later as a
//! message of its own.

use std::time::Duration;

use woodward_agents::{Conversation, Letter, files as agent_files};
use woodward_api::{Code, Done, Problem};
use woodward_core::hint::{Hint, NextCommand};
use woodward_core::state::AnswerVia;
use woodward_core::{Fact, MessageId, RunId, State, Task, TaskName};
use woodward_store::{Delivery, NewMessage, TaskClaim, fresh_uuid};

use super::{Answered, Found, person};
use crate::clock;
use crate::engine::{Engine, Inner};
use crate::error::Result;

/// How long the program may take to take an answer.
const TAKEN_MAX: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What became of an answer so far.
#[derive(Debug, PartialEq, Eq)]
enum Progress {
    /// Nothing is known yet.
    Pending,
    /// The program has it.
    Taken,
    /// The program did not take it, and why.
    Refused(String),
    /// The run is over, and nobody took it.
    Over,
}

fn progress(talk: &Conversation, answer: MessageId) -> Progress {
    let settled = talk.delivered.iter().find(|one| one.message == answer);
    match settled {
        Some(one) => match &one.refused {
            Some(note) => Progress::Refused(note.clone()),
            None => Progress::Taken,
        },
        None if talk.ending.is_some() && talk.pending.is_empty() => Progress::Over,
        None => Progress::Pending,
    }
}

impl Engine {
    /// Gives an answer to the program that asked, and waits until it has it.
    pub(super) async fn give_answer(
        &self,
        found: Found,
        run: RunId,
        question: MessageId,
        text: String,
        said: &str,
    ) -> Answered<Done> {
        let name = found.task.name.clone();
        let dir = self.inner.options.paths.run(run);
        let id = MessageId::new(fresh_uuid());
        let letter = Letter::Answer {
            id,
            question,
            text: text.clone(),
        };
        agent_files::post(&dir, &letter, clock::now()).map_err(|error| {
            Problem::new(
                Code::Unavailable,
                format!("the answer can't be handed over: {error}"),
            )
            .hint(attach(&name))
        })?;
        let deadline = tokio::time::Instant::now() + TAKEN_MAX;
        loop {
            let talk = agent_files::load_conversation(&dir).unwrap_or_default();
            match progress(&talk, id) {
                Progress::Taken => break,
                Progress::Refused(note) => return Err(not_taken(&name, &note)),
                Progress::Over => return Err(not_taken(&name, "the program has ended")),
                Progress::Pending if tokio::time::Instant::now() > deadline => {
                    return Err(unconfirmed(&name));
                }
                Progress::Pending => tokio::time::sleep(LOOK_EVERY).await,
            }
        }
        self.inner
            .record_answer(&found.task, question, id, text)
            .await?;
        let task = self.inner.store.load_task(found.task.id).await;
        let task = task.map_err(crate::error::EngineError::from)?;
        let found = Found {
            task: task.unwrap_or(found.task),
            ..found
        };
        Ok(self.done(found, format!("{name} {said}")).await?)
    }
}

impl Inner {
    /// Records an answer that the program has taken. Recording it twice changes nothing.
    pub(crate) async fn record_answer(
        &self,
        task: &Task,
        question: MessageId,
        message: MessageId,
        text: String,
    ) -> Result<()> {
        let posted = NewMessage {
            id: message,
            body: text,
        };
        self.store
            .post_message(task.id, person(), clock::now(), posted)
            .await?;
        let claim = TaskClaim {
            task: task.id,
            epoch: task.epoch,
        };
        let facts = [
            (person(), Fact::Answered { question, message }),
            (self.claim(task.epoch), Fact::MessageAccepted { message }),
        ];
        for (actor, fact) in facts {
            match self.record(task, actor, fact).await {
                Err(error) if !error.is_repeated() => return Err(error),
                _ => {}
            }
        }
        match self
            .store
            .record_delivery(claim, message, Delivery::Accepted)
            .await
        {
            Ok(()) | Err(woodward_store::StoreError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// The question of a task that can be answered only in the program's terminal.
pub(super) fn only_in_terminal(task: &Task) -> Option<Problem> {
    let State::Waiting { question, .. } = &task.state else {
        return None;
    };
    (question.via == AnswerVia::Terminal).then(|| {
        let name = &task.name;
        let what = format!("{name} asks in its terminal, and can be answered only there");
        Problem::new(Code::WrongState, what).hint(NextCommand::Attach { task: name.clone() })
    })
}

fn not_taken(name: &TaskName, note: &str) -> Problem {
    let what = format!("the program of {name} did not take the answer: {note}");
    Problem::new(Code::WrongState, what)
        .hint(attach(name))
        .hint(NextCommand::Show { task: name.clone() }.purpose("see how it stands"))
}

fn unconfirmed(name: &TaskName) -> Problem {
    let seconds = TAKEN_MAX.as_secs();
    let what = format!("the program of {name} has not confirmed the answer within {seconds} s");
    Problem::new(Code::Unavailable, what)
        .hint(NextCommand::Show { task: name.clone() }.purpose("see whether it still asks"))
        .hint(attach(name))
}

fn attach(name: &TaskName) -> Hint {
    NextCommand::Attach { task: name.clone() }.purpose("answer in its terminal")
}

#[cfg(test)]
mod tests {
    use woodward_agents::Delivered;

    use super::*;

    #[test]
    fn an_answer_is_given_only_when_the_program_took_it() {
        let id = MessageId::new(fresh_uuid());
        let mut talk = Conversation::default();
        assert_eq!(progress(&talk, id), Progress::Pending);
        talk.ending = Some(woodward_agents::Ending::Interrupted);
        assert_eq!(progress(&talk, id), Progress::Over);
        talk.delivered.push(Delivered {
            message: id,
            refused: Some("the dialog changed".into()),
        });
        let refused = Progress::Refused("the dialog changed".into());
        assert_eq!(progress(&talk, id), refused);
        talk.delivered[0].refused = None;
        assert_eq!(progress(&talk, id), Progress::Taken);
    }
}
