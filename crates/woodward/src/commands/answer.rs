//! `woodward answer`: an agent's question is answered.

use std::fmt::Write as _;

use clap::Args;
use clap_complete::ArgValueCandidates;
use woodward_api::client::TaskAction;
use woodward_api::{Code, Problem, QuestionView};
use woodward_core::hint::NextCommand;

use super::{Dry, act};
use crate::failure::{Failure, Outcome};
use crate::render::text;
use crate::session::Session;
use crate::{complete, input};

/// Answer what an agent asks; without an answer, shows the question and asks you
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:\n  woodward answer e2e-tests                see the question, then type\n  woodward answer e2e-tests PostgreSQL\n  woodward answer e2e-tests 2              the second choice\n  woodward answer e2e-tests 1,3            two of them, where several are possible\n  woodward answer e2e-tests \"no, use the mirror\"   a no with its reason"
)]
pub(crate) struct Answer {
    /// The task: name, unique prefix, id, branch, `.` (this worktree) or `-` (the last one)
    #[arg(value_name = "TASK", add = ArgValueCandidates::new(complete::tasks))]
    task: String,
    /// The answer, or the number of a choice; `-` reads it from stdin. Where the agent's program asks, several choices go with commas, and so do words of your own
    #[arg(value_name = "TEXT")]
    text: Vec<String>,
    #[command(flatten)]
    dry: Dry,
}

impl Answer {
    /// Does it.
    pub(crate) async fn run(self, session: &Session) -> Outcome {
        let text = if self.text.is_empty() {
            self.ask(session).await?
        } else {
            input::words(&self.text, "the answer").await?
        };
        let action = TaskAction::Answer(woodward_api::Answer { text });
        act(session, &self.task, &action, self.dry).await
    }

    async fn ask(&self, session: &Session) -> Outcome<String> {
        let task = session.task(&self.task)?;
        let detail = session
            .call(async |client| client.task(&task).await)
            .await?;
        let name = &detail.task.name;
        let Some(question) = &detail.question else {
            let prompt = NextCommand::Prompt { task: name.clone() };
            let problem = Problem::new(Code::WrongState, format!("{name} asks nothing"))
                .hint(prompt.purpose("to tell its agent something"));
            return Err(problem.into());
        };
        let told = render(question);
        if session.out.json() || !input::is_interactive() {
            return Err(
                Failure::usage(format!("an answer is missing\n{}", told.trim_end()))
                    .hint(NextCommand::AnswerText { task: name.clone() }),
            );
        }
        session.out.say(told.trim_end());
        match input::line().await? {
            Some(line) => input::not_blank(line, "the answer"),
            None => Err(Failure::usage("no answer was given")),
        }
    }
}

fn render(question: &QuestionView) -> String {
    let mut told = text::clean(&question.text) + "\n";
    for (number, choice) in (1..).zip(&question.choices) {
        writeln!(told, "  {number}. {}", text::one_line(choice)).expect("a string takes any text");
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_numbered() {
        let question = QuestionView {
            text: "Which \u{1b}[1mdatabase?".into(),
            choices: vec!["SQLite".into(), "PostgreSQL".into()],
        };
        assert_eq!(
            render(&question),
            "Which database?\n  1. SQLite\n  2. PostgreSQL\n"
        );
    }
}
