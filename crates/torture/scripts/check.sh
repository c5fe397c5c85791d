#!/bin/sh
# The project's check. Each test names its task; each count is the number of tests of its bucket, so
# that two good changes of one bucket merge cleanly and are wrong together; each noted task is noted.
set -eu
red() {
    echo "$*"
    exit 1
}
noted=" "
for file in notes/*; do
    bucket=${file#notes/}
    while read -r line; do
        case $line in
            "<<<<<<<"* | "======="* | ">>>>>>>"*) red "$file has conflict markers" ;;
        esac
        noted="$noted$bucket-$line "
    done <"$file"
done
for file in count/*; do
    bucket=${file#count/}
    number=0
    for test in tests/"$bucket"-*.t; do
        [ -e "$test" ] || continue
        number=$((number + 1))
        name=${test#tests/}
        name=${name%.t}
        how=
        { read -r first; read -r how || true; } <"$test"
        [ "$bucket-$first" = "$name" ] || red "$test is not about its task but about '$first'"
        if [ "$how" = note ]; then
            case $noted in
                *" $name "*) ;;
                *) red "$name is not in notes/$bucket" ;;
            esac
        fi
    done
    read -r said <"$file"
    [ "$said" = "$number" ] || red "count/$bucket says $said, but there are $number"
done
echo "ok"
