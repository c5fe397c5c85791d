#!/bin/sh
# What Woodward does to a task, as bare git steps, one task after the other: the yardstick of the
# lifecycle bench. Arguments: the round, and how many tasks.
set -eu
round=$1
trees=../raw.worktrees
mkdir -p "$trees"
if [ ! -d "$trees/gate" ]; then
    git worktree add --quiet --detach "$trees/gate" main
fi
task=0
while [ "$task" -lt "$2" ]; do
    task=$((task + 1))
    name=r$round-$task
    tree=$trees/$name
    git worktree add --quiet -b "bare/$name" "$tree" main
    (cd "$tree" && WOODWARD_TASK=$name sh quick.sh >/dev/null)
    git -C "$tree" add --all
    git -C "$tree" commit --quiet -m "$name"
    (cd "$tree" && sh gate.sh >/dev/null)
    old=$(git rev-parse main)
    merged=$(git merge-tree --write-tree "$old" "bare/$name")
    new=$(git commit-tree "$merged" -p "$old" -m "$name")
    git -C "$trees/gate" checkout --quiet --detach "$new"
    (cd "$trees/gate" && sh gate.sh >/dev/null)
    git update-ref refs/heads/main "$new" "$old"
    git read-tree -m -u "$old" "$new"
    git worktree remove --force "$tree"
    git branch --quiet -D "bare/$name"
done
