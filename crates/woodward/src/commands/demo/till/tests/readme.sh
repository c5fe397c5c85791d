named=$(sed -n 's/^Commands: //p' README.md | tr ' ' '\n' | sort | tr '\n' ' ')
there=$(for file in commands/*.sh; do basename "$file" .sh; done | sort | tr '\n' ' ')
is "README.md names every command" "$named" "$there"
