//! `woodward conflicts`: where the changes of tasks meet.

use clap::Args;

use crate::failure::Outcome;
use crate::render::conflicts::conflicts;
use crate::session::Session;

/// Where tasks under way meet: conflicts, shared lines and files, broken calls
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:\n  woodward conflicts                 all that meet, as a matrix and a list\n  woodward conflicts fix-login       only those of one task\n  woodward conflicts --json          for programs"
)]
pub(crate) struct Conflicts {
    /// Only pairs with this task
    #[arg(value_name = "TASK", add = clap_complete::ArgValueCandidates::new(crate::complete::tasks))]
    task: Option<String>,
}

impl Conflicts {
    /// Does it.
    pub(crate) async fn run(self, session: &Session) -> Outcome {
        let mut view = session
            .call(async |client| client.conflicts().await)
            .await?;
        if let Some(task) = &self.task {
            let task = session.task(task)?;
            let detail = session
                .call(async |client| client.task_briefly(&task).await)
                .await?;
            let name = detail.task.name;
            view.pairs.retain(|pair| pair.a == name || pair.b == name);
            view.with_target.retain(|one| one.task == name);
            view.waiting
                .retain(|one| one.task == name || one.behind == name);
            let met: Vec<_> = view
                .pairs
                .iter()
                .flat_map(|pair| [pair.a.clone(), pair.b.clone()])
                .collect();
            view.tasks
                .retain(|one| one.name == name || met.contains(&one.name));
        }
        session.out.answer(&view, |look| conflicts(&view, look))
    }
}
