//! What a gate costs besides its command, for `cargo xtask bench gates`.
//!
//! The same steps as for a task's result, timed one by one. Nothing else calls this.

use std::path::Path;
use std::time::{Duration, Instant};

use super::{Ground, Job, look};
use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::land::Use;
use crate::run_env;

/// One round's times.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// A look that runs the command.
    pub run: Duration,
    /// A look whose answer is known.
    pub known: Duration,
}

impl Engine {
    /// Has the first gate of a project look at its base so many times, always in the same directory,
    /// which is ready before. `beside` is called before each round.
    ///
    /// # Errors
    /// When there is no project or no gate.
    #[doc(hidden)]
    pub async fn measure_gate(
        &self,
        root: &Path,
        rounds: usize,
        mut beside: impl FnMut() + Send,
    ) -> Result<Vec<Measured>> {
        let inner = &self.inner;
        let project = self.project_of(root).await?;
        let config = project.load_config().await?;
        let gate = config.gates().first();
        let gate = gate.ok_or_else(EngineError::interrupted)?;
        let commit = project.repo.require_tip(&project.base(&config)).await?;
        let dir = inner.options.paths.base_gates(project.id(), &commit);
        let mut env = run_env::of_project(inner, &project, &config);
        env.insert(run_env::WORKTREE.to_owned(), String::new());
        let mut job = Job {
            project: &project,
            config: &config,
            gates: config.gates(),
            dir: dir.join("measured"),
            commit: commit.clone(),
            tree: project.repo.tree_of(&commit).await?,
            env,
            mark: String::new(),
            changed: None,
            base: None,
            fresh: true,
        };
        let mut ground = Ground::new(inner, &project, &config, &commit, Use::Verify, dir.clone());
        ground.path(&inner.stopping).await?;
        let mut measured = Vec::with_capacity(rounds);
        for round in 0..rounds {
            job.dir = dir.join(format!("measured-{round}"));
            job.mark = format!("measured-{commit}-{round}");
            // One for all gates of a look.
            std::fs::create_dir_all(&job.dir)
                .map_err(EngineError::file(job.dir.display().to_string()))?;
            beside();
            let mut times = [Duration::ZERO; 2];
            for (fresh, time) in [true, false].into_iter().zip(&mut times) {
                job.fresh = fresh;
                let begun = Instant::now();
                let looked = look::look(inner, &job, gate, &mut ground, &inner.stopping).await?;
                *time = begun.elapsed();
                let looked = looked.ok_or_else(EngineError::interrupted)?;
                let as_wanted = looked.result.detail.reused != fresh;
                if !as_wanted || looked.result.exit_code != Some(0) {
                    return Err(EngineError::interrupted());
                }
            }
            let [run, known] = times;
            measured.push(Measured { run, known });
        }
        Ok(measured)
    }
}
