is "sum adds up" "$(sh till.sh sum 120 250)" 370
is "the sum of nothing is 0" "$(sh till.sh sum)" 0
