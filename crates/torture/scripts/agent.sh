#!/bin/sh
# The scripted agent. The first line of its prompt says what kind of work it does; whatever was done
# before it was killed is found in the directory and gone on from.
set -eu
read -r words
bucket=0 steps=1 pause=0.05 kind=plain dirty=no daemon=no wrong=no fail=no empty=no
for word in $words; do
    value=${word#*=}
    case $word in
        bucket=*) bucket=$value ;;
        steps=*) steps=$value ;;
        pause=*) pause=$value ;;
        kind=*) kind=$value ;;
        dirty=*) dirty=$value ;;
        daemon=*) daemon=$value ;;
        wrong=*) wrong=$value ;;
        fail=*) fail=$value ;;
        empty=*) empty=$value ;;
    esac
done
task=$WOODWARD_TASK
purpose=$WOODWARD_PURPOSE
echo "$task: $purpose"

if [ "$daemon" = yes ]; then
    # A daemon in a session of its own whose parent is gone: only its mark tells where it is from.
    (setsid sh -c 'sleep 600 & sleep 600 &' >/dev/null 2>&1 &)
fi
sleep "$pause"
if [ "$empty" = yes ]; then
    exit 0
fi

file=tests/$bucket-$task.t
content=$task
for line in "$kind" $(seq "$steps"); do
    content="$content
$line"
    printf '%s\n' "$content" >"$file"
    if [ "$purpose" != conflict ] && [ "$purpose" != fix ]; then
        git add "$file"
        git commit --quiet --allow-empty -m "$task: step $line"
        sleep "$pause"
    fi
done
if [ "$fail" = yes ] && [ "$purpose" = first ]; then
    echo "it does not work today"
    exit 3
fi

# What the merged directory really holds; that resolves every conflict and repairs every count.
number=0
noted=start
name= how=
for other in tests/"$bucket"-*.t; do
    number=$((number + 1))
    { read -r name && read -r how; } <"$other" || true
    if [ "$how" = note ]; then
        noted="$noted
$name"
    fi
done
if [ "$wrong" = yes ] && [ "$purpose" = first ]; then
    number=$((number + 7))
fi
printf '%s\n' "$number" >"count/$bucket"
printf '%s\n' "$noted" >"notes/$bucket"
if [ "$dirty" = no ]; then
    git add --all
    git commit --quiet --allow-empty -m "$task: counted"
fi
echo "done"
