# shellcheck shell=bash disable=SC2154 # cur, words and cword are set by git's completion
# Completion of `git evt-push` for bash. git's own completion calls _git_evt_push.

_git_evt_push() {
    local index=0 line answer
    # git's own options may stand before the command.
    while [[ $index -lt $cword && ${words[index]} != evt-push && ${words[index]} != git-evt-push ]]; do
        index=$((index + 1))
    done
    line=("${words[@]:index+1:cword-index-1}" "$cur")
    answer=$(__git evt-push __complete "${line[@]}" 2>/dev/null) || return
    # The last line says whether files may stand there too; bash offers them when there is nothing else.
    answer=$(printf '%s\n' "$answer" | sed -e '$d' -e 's/\t.*//')
    case $cur in
    --*=*) __gitcomp_nl "$answer" "" "${cur#*=}" ;;
    *) __gitcomp_nl "$answer" ;;
    esac
}

if type __git_complete >/dev/null 2>&1; then
    __git_complete git-evt-push _git_evt_push
fi
