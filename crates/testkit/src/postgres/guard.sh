# Runs the server given as arguments until it ends by itself, or until stdin
# closes, which it does when the test process ends in whatever way. Exits with
# the server's code.
exec 3<&0
"$@" </dev/null 3<&- &
server=$!
(
    read -r _ <&3
    # A server that has not installed its handlers yet ignores the first signal:
    # a background child of sh is started so.
    tries=0
    while [ "$tries" -lt 50 ] && kill -QUIT "$server" 2>/dev/null; do
        tries=$((tries + 1))
        sleep 0.1
    done
    kill -KILL "$server" 2>/dev/null
) &
watcher=$!
exec 3<&- </dev/null
wait "$server"
code=$?
kill "$watcher" 2>/dev/null
exit "$code"
