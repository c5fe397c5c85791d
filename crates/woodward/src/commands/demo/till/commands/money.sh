# money CENTS: as people write it
printf '%d.%02d\n' $(($1 / 100)) $(($1 % 100))
