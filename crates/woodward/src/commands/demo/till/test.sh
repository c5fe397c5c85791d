#!/bin/sh
# Runs every test in tests/. `is NAME WAS WANTED` is one test.
cd "$(dirname "$0")" || exit 2
passed=0
failed=0
is() {
    if [ "$2" = "$3" ]; then
        passed=$((passed + 1))
        echo "ok - $1"
    else
        failed=$((failed + 1))
        echo "not ok - $1: wanted \"$3\", was \"$2\""
    fi
}
for file in tests/*.sh; do . "./$file"; done
total=$((passed + failed))
echo "Tests: $failed failed, $passed passed, $total total"
[ "$failed" -eq 0 ] && [ "$total" -gt 0 ]
