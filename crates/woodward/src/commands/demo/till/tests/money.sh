is "money has cents" "$(sh till.sh money 370)" 3.70
is "money keeps the zero of few cents" "$(sh till.sh money 1205)" 12.05
