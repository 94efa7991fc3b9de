#!/bin/sh
# A stand-in for an engine in tests: waits for the greeting and answers with the lines of the first file; answers
# the first command that asks for work with the lines of the second. Ends on end of input, as an engine must.
read -r _ || exit 0
cat "$1"
while read -r command; do
    case $command in
        *'"command":"start"'* | *'"command":"pair"'* | *'"command":"probe"'* | *'"command":"open"'*) cat "$2" ;;
        *'"command":"quit"'*) exit 0 ;;
    esac
done
