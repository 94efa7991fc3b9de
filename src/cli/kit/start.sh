#!/bin/sh
# Starts the workshop from this folder, which may be read-only: `sh start.sh`, and behind it what perflings takes.
here=$(cd "$(dirname "$0")" && pwd) || exit
said=$(LC_ALL=C "$here/perflings" --version 2>&1) || {
    echo "perflings does not start from $here: $said" >&2
    case $said in
    *ermission*)
        echo "Nothing in this folder can be started: it is mounted noexec, or its file system keeps no permissions. Copy the program:" >&2
        echo "  cp '$here/perflings' ~/perflings && chmod +x ~/perflings && ~/perflings --course '$here/course'" >&2
        ;;
    *)
        echo "It was made for {SYSTEM}; this is $(uname -sm)." >&2
        ;;
    esac
    exit 1
}
case ${1-} in
"" | -* | {COMMANDS})
    # The course of this folder, unless another is named.
    case " $*" in
    *" --course"*) ;;
    *) set -- "$@" --course "$here/course" ;;
    esac
    ;;
esac
exec "$here/perflings" "$@"
