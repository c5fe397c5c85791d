#!/bin/sh
# A till for a small shop: sh till.sh COMMAND CENTS...
set -eu
here=$(dirname "$0")
command=${1:?which command?}
shift
file=$here/commands/$command.sh
[ -f "$file" ] || { echo "till: there is no command $command" >&2; exit 2; }
. "$file"
