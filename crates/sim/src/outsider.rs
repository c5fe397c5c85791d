//! Somebody who pushes to main past Woodward.
//!
//! Their pushes are fast-forwards of a green main: Woodward can't promise anything about others'
//! force-pushes.

use woodward_core::Millis;

use crate::env::Env;
use crate::git::{Change, MAIN};
use crate::ids::short;

/// Pushes once, perhaps.
pub(crate) fn turn(env: &mut Env) -> Millis {
    if env.rng.chance(env.faults.foreign_push) {
        push(env);
    }
    env.rng.span(2_000, 25_000)
}

fn push(env: &mut Env) {
    let main = env.git.main();
    let mut tree = (*env.git.show(&main).tree).clone();
    tree.insert(Change::Foreign(env.stats.foreign_pushes as u32), 1);
    if !env.git.is_green_tree(&tree) {
        return;
    }
    let pushed = env.git.commit(vec![main.clone()], tree, None);
    if env.git.update_ref(MAIN, &pushed, Some(&main)).is_ok() {
        env.stats.foreign_pushes += 1;
        env.say(|| format!("somebody pushes {} to main", short(&pushed)));
    }
}
