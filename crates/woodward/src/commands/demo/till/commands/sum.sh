# sum CENTS...: all of them together
total=0
for cents in "$@"; do total=$((total + cents)); done
echo "$total"
