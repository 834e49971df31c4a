#!/bin/sh
# Finds Detent and starts it for a plugin:
#
#   launch.sh hook CLIENT EVENT    answers a hook event; the exit code is 0 if Detent is gone
#   launch.sh mcp                  the MCP server
#
# In this order: the program that a person recorded with `detent init` for this project, the one that a person recorded
# for the account, `detent` on PATH. Directories of the project on PATH do not count, because an agent can write there.
# Nothing is downloaded.

what=$1 client=$2 event=$3
tab='	'

# The project: the outermost directory with a state directory or a repository, below the home directory. An agent can make
# another one inside it. The home directory counts only with a state directory of its own.
cd -P . 2>/dev/null
here=$PWD user=$HOME
if cd -P "$HOME" 2>/dev/null; then user=$PWD; fi
cd -P "$here" 2>/dev/null
place=$here state='' project=''
while :; do
    if [ -d "$place/.workflow" ]; then
        state=$place project=$place
    elif [ "$place" != "$user" ] && [ -e "$place/.git" ]; then
        project=$place
    fi
    [ "$place" = "$user" ] && break
    place=${place%/*}
    [ -n "$place" ] || break
done
# Outside of projects the directory itself counts as one, but not the whole home directory: no path begins with //.
if [ -z "$project" ]; then
    project=$here
    [ "$here" != "$user" ] || project=//
fi

start() { # PYTHON HOOK
    case $what in
        hook) exec "$1" -I -S "$2" "$client" --plugin ;;
        mcp) exec "$1" -P -E -m detent mcp ;;
    esac
}

# Programs that a person recorded: directory or *, interpreter, hook. The nearest directory around this one counts.
case $XDG_STATE_HOME in /*) home=$XDG_STATE_HOME ;; *) home=$HOME/.local/state ;; esac
record=$home/detent/programs
if [ -r "$record" ]; then
    nearest='' own_python='' own_hook='' any_python='' any_hook=''
    while IFS=$tab read -r root python hook; do
        [ -x "$python" ] && [ -r "$hook" ] || continue
        if [ "$root" = '*' ]; then any_python=$python any_hook=$hook; fi
        case $here/ in
            "$root"/*) [ ${#root} -gt ${#nearest} ] && nearest=$root own_python=$python own_hook=$hook ;;
        esac
    done <"$record"
    if [ -n "$own_python" ]; then start "$own_python" "$own_hook"; fi
    if [ -n "$any_python" ]; then start "$any_python" "$any_hook"; fi
fi

IFS=:
for directory in $PATH; do
    case $directory in /*) ;; *) continue ;; esac
    [ -x "$directory/detent" ] && [ ! -d "$directory/detent" ] || continue
    real=$(PATH=/usr/bin:/bin readlink -f "$directory/detent" 2>/dev/null) || real=$directory/detent
    case $directory/ in "$project"/*) continue ;; esac
    case $real in "$project"/*) continue ;; esac
    # The interpreter of the program may be gone, and the client must not be blocked by that.
    first=''
    IFS= read -r first <"$directory/detent" 2>/dev/null
    case $first in
        '#!'*)
            first=${first#'#!'}
            first=${first# }
            [ -x "${first%% *}" ] || continue
            ;;
    esac
    case $what in
        hook) exec "$directory/detent" hook "$client" --plugin ;;
        mcp) exec "$directory/detent" mcp ;;
    esac
done
unset IFS

missing='Detent is not installed, so its plugin does nothing: install it from its repository, or remove the plugin'
case $what:$event in
    mcp:*)
        printf 'detent: %s\n' "$missing" >&2
        exit 1
        ;;
    hook:SessionStart) printf '{"systemMessage":"%s"}' "$missing" ;;
    hook:UserPromptSubmit | hook:BeforeAgent)
        # Once a prompt, and only where work is held.
        [ -z "$state" ] || printf '{"systemMessage":"%s"}' "$missing"
        ;;
esac
exit 0
