//! Any program in a terminal, of which nothing is known but its screen and its end.

use std::path::Path;

use super::conduct::{Answer, Gone, Opening, Side, Sign, conduct};
use super::hub::Glance;
use super::pty::Start;
use crate::event::{Ending, Event, Reply};
use crate::spec::{SessionId, Spec};
use crate::wire::Wire;

/// It says nothing, so nothing is known, and nothing is typed.
struct Silent;

impl Side for Silent {
    fn look(&mut self, _: &Glance) -> Vec<Sign> {
        Vec::new()
    }

    fn is_ready(&self, _: &Glance) -> bool {
        false
    }

    fn has_dialog(&self, _: &Glance) -> bool {
        true
    }

    fn is_known_by_screen(&self) -> bool {
        true
    }

    fn has_started(&self) -> bool {
        true
    }

    fn answer(&mut self, _: &str, _: &Reply, _: &Glance) -> Answer {
        Answer::Cannot
    }
}

pub(super) async fn converse(dir: &Path, spec: &Spec, wire: &mut Wire) -> Option<Ending> {
    let prompt = std::fs::read_to_string(&spec.prompt).unwrap_or_default();
    let mut argv = spec.program.clone();
    let row = &spec.command;
    let (template, id) = match &spec.session {
        SessionId::New(id) => (&row.session, id),
        SessionId::Resume(id) => (&row.resume, id),
    };
    argv.extend(template.iter().map(|arg| arg.replace("{session}", id)));
    if let Some(model) = &spec.model {
        argv.extend(row.model.iter().map(|arg| arg.replace("{model}", model)));
    }
    argv.extend(spec.args.iter().cloned());
    // After a takeover nothing is said: a person will.
    if row.prompt == crate::adapters::command::PromptBy::Argument && !prompt.is_empty() {
        argv.push(prompt.clone());
    }
    let start = Start {
        argv,
        env: vec![(
            String::from("WOODWARD_PROMPT_FILE"),
            spec.prompt.clone().into(),
        )],
    };
    // What it was started with, it has; nobody can say more.
    for message in spec.messages.iter().copied() {
        wire.say(Event::Accepted { message }).await;
    }
    let opening = Opening {
        start,
        prompt,
        paste: false,
    };
    Some(match conduct(dir, spec, wire, opening, &mut Silent).await {
        Gone::NotStarted(ending) | Gone::Declined(ending) => ending,
        Gone::Ended { status, .. } if status.is_some_and(|status| status.success()) => {
            Ending::Completed
        }
        gone => gone.ending()?,
    })
}
