# One change of the history, made on the old base. Asked a second time, it gives up: a change that was
# made long ago does not know better.
set -e
seen=$1/$WOODWARD_TASK
if [ -e "$seen" ]; then
    echo "this change has been made as it is; there is nothing to add" >&2
    exit 1
fi
: >"$seen"
git read-tree --reset -u "refs/replay/tasks/$WOODWARD_TASK^{tree}"
git commit --quiet --no-verify --reuse-message "refs/replay/tasks/$WOODWARD_TASK"
