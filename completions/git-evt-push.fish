# Completion of `git evt-push` for fish. Read at the start, from vendor_conf.d: fish 3.6 does not find the completions of
# git's further commands by their names.

function __git_evt_push_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    # git's own options may stand before the command.
    set -l at (contains -i -- evt-push $words; or contains -i -- git-evt-push $words; or echo 1)
    set -l answer (git evt-push __complete $words[(math $at + 1)..-1] "$current" 2>/dev/null)
    or return
    set -l prefix (string match -r -- '^--[^=]*=' "$current")
    for candidate in $answer[1..-2]
        echo -- "$prefix$candidate"
    end
    if test "$answer[-1]" = :0
        __fish_complete_path (string replace -- "$prefix" '' "$current")
    end
end

complete -c git -n '__fish_git_using_command evt-push' -f -a '(__git_evt_push_complete)'
complete -c git-evt-push -f -a '(__git_evt_push_complete)'
