//! The hooks of a task's worktree: a guard against accidents, and the project's own hooks behind it.
//!
//! The guard is no wall: `git -c core.hooksPath=…` goes around it. It gives an agent that meant no
//! harm a clear message before it moves `main`, a tag or another task's branch.

/// The project's hooks that still run in a worktree. Those of the receiving side have no business
/// there, and some change what git does by merely being there.
pub(crate) const CHAINED: [&str; 13] = [
    "applypatch-msg",
    "commit-msg",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-merge",
    "post-rewrite",
    "pre-applypatch",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "prepare-commit-msg",
];

/// Runs the project's hook of the same name, if it has one. The first line of `hooks-path` next to
/// it says where the project keeps its hooks; a relative place is relative to the worktree.
pub(crate) const SHIM: &str = r#"#!/bin/sh
# Written by Woodward: runs the project's own hook of this name.
here=${0%/*}
{ IFS= read -r dir; } 2>/dev/null < "$here/../../../woodward/hooks-path" || exit 0
hook=$dir/${0##*/}
case $hook in /*) ;; *) hook=./$hook ;; esac
[ -f "$hook" ] && [ -x "$hook" ] || exit 0
exec "$hook" "$@"
"#;

/// The guard of one worktree. `own` is the ref directory that belongs to the task, if it has one.
pub(crate) fn guard(branch: &str, own: Option<&str>) -> String {
    let mut allowed = format!("refs/heads/{branch}");
    if let Some(own) = own {
        allowed.push_str(&format!("|refs/heads/{own}/*"));
    }
    format!(
        r#"#!/bin/sh
# Written by Woodward: refs that other tasks and people share are not changed from this worktree.
here=${{0%/*}}
hook=
if {{ IFS= read -r dir; }} 2>/dev/null < "$here/../../../woodward/hooks-path"; then
  hook=$dir/reference-transaction
  case $hook in /*) ;; *) hook=./$hook ;; esac
  [ -f "$hook" ] && [ -x "$hook" ] || hook=
fi
if [ "$1" != prepared ]; then
  [ -n "$hook" ] || exit 0
  exec "$hook" "$@"
fi
all=
refused=
while read -r old new ref; do
  all="$all$old $new $ref
"
  # A deletion that does not look first has nothing but zeros on both sides.
  case $new in *[!0]*) [ "$old" = "$new" ] && continue ;; esac
  case $ref in
    worktrees/*|main-worktree/*) refused="$refused $ref" ;;
    refs/worktree/*|refs/bisect/*|refs/rewritten/*|refs/remotes/*) ;;
    {allowed}) ;;
    refs/*) refused="$refused $ref" ;;
  esac
done
if [ -n "$refused" ]; then
  echo "woodward: refused to change$refused" >&2
  echo "woodward: this worktree's branch is {branch}; commit there. Woodward lands it." >&2
  exit 1
fi
[ -n "$hook" ] || exit 0
printf %s "$all" | "$hook" "$@"
"#
    )
}
