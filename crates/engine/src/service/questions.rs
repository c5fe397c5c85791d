//! What an agent asks through `woodward ask`, and the answer's way back.

use std::time::Duration;

use woodward_api::{AnswerState, Asked, Code, NewQuestion, Problem};
use woodward_core::state::Question;
use woodward_core::{Fact, MessageId, Note, RunId, State, Task};
use woodward_store::{Delivery, TaskClaim};

use super::Answered;
use crate::engine::Engine;
use crate::error::Result;

const WAIT_MAX: Duration = Duration::from_secs(30);
const CHOICES_MAX: usize = 16;

impl Engine {
    /// An agent asks something. Asking the same question again asks it once.
    ///
    /// # Errors
    /// When the run is not one that works here now.
    pub async fn ask(&self, run: RunId, question: NewQuestion) -> Answered<Asked> {
        if question.text.trim().is_empty() {
            return Err(Problem::new(Code::Usage, "the question is empty"));
        }
        let asked = Asked {
            question: question.id,
        };
        let Some(task) = self.task_of(run).await? else {
            return Err(not_running(run));
        };
        match &task.state {
            State::Waiting { question: open, .. } if open.id == question.id => return Ok(asked),
            State::Waiting { .. } => {
                return Err(Problem::new(
                    Code::WrongState,
                    "another question of this run waits for its answer",
                ));
            }
            _ => {}
        }
        let choices = question.choices.into_iter().take(CHOICES_MAX);
        let fact = Fact::AgentAsked {
            run,
            question: Question {
                id: question.id,
                text: Note::from(question.text),
                choices: choices.map(Note::from).collect(),
                via: Default::default(),
            },
        };
        self.inner
            .record(&task, self.inner.claim(task.epoch), fact)
            .await?;
        Ok(asked)
    }

    /// What became of a question; waits a while for the answer.
    ///
    /// # Errors
    /// When the answer can't be looked up.
    pub async fn answer_to(
        &self,
        run: RunId,
        question: MessageId,
        wait: Duration,
    ) -> Answered<AnswerState> {
        let deadline = tokio::time::Instant::now() + wait.min(WAIT_MAX);
        loop {
            let seq = self.inner.tail.now();
            let state = self.look_for_answer(run, question).await?;
            let left = deadline.saturating_duration_since(tokio::time::Instant::now());
            if state != AnswerState::Pending || left.is_zero() {
                return Ok(state);
            }
            self.inner.tail.beyond(seq, left).await;
        }
    }

    async fn look_for_answer(&self, run: RunId, question: MessageId) -> Result<AnswerState> {
        let Some(task) = self.task_of(run).await? else {
            return Ok(AnswerState::Gone);
        };
        let history = self.inner.store.load_history(task.id).await?;
        let answer = history.iter().find_map(|(event, _)| match &event.fact {
            Fact::Answered {
                question: answered,
                message,
            } if *answered == question => Some(*message),
            _ => None,
        });
        let Some(message) = answer else {
            let open =
                matches!(&task.state, State::Waiting { question: open, .. } if open.id == question);
            return Ok(if open {
                AnswerState::Pending
            } else {
                AnswerState::Gone
            });
        };
        let messages = self.inner.store.load_messages(task.id).await?;
        let Some(text) = messages.into_iter().find(|m| m.id == message) else {
            return Ok(AnswerState::Gone);
        };
        // Whoever asked has it in its hands with this answer.
        let claim = TaskClaim {
            task: task.id,
            epoch: task.epoch,
        };
        self.inner
            .store
            .record_delivery(claim, message, Delivery::Accepted)
            .await?;
        let fact = Fact::MessageAccepted { message };
        match self
            .inner
            .record(&task, self.inner.claim(task.epoch), fact)
            .await
        {
            Err(error) if !error.is_repeated() => return Err(error),
            _ => {}
        }
        Ok(AnswerState::Answered { text: text.body })
    }

    /// The task that a run works on here and now.
    async fn task_of(&self, run: RunId) -> Result<Option<Task>> {
        for (task, epoch) in self.inner.drivers.held() {
            let Some(task) = self.inner.store.load_task(task).await? else {
                continue;
            };
            let (State::Working { run: current, .. } | State::Waiting { run: current, .. }) =
                &task.state
            else {
                continue;
            };
            if *current == run && task.epoch == epoch {
                return Ok(Some(task));
            }
        }
        Ok(None)
    }
}

fn not_running(run: RunId) -> Problem {
    Problem::new(
        Code::WrongState,
        format!("run {run} is not working here now"),
    )
    .hint("only agents ask: WOODWARD_RUN must be the id of a run that works")
}
