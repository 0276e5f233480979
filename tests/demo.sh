#!/usr/bin/env bash
# The whole lab against the stand-in, with git pushes over HTTP; nothing but the loopback address is used.
#
#   tests/demo.sh [--real-time]
#
# The periods are shortened to fit into a minute; --real-time takes those of the lab: 30 s, 40 s, 15 s, 120 s.
set -euo pipefail

case "${1-} $#" in
    ' 0') times=(--poll-period 8s --no-poll-watch 16s --unsigned-watch 4s --safety-net 120s) ;;
    '--real-time 1') times=(--poll-period 30s --no-poll-watch 40s --unsigned-watch 15s --safety-net 120s) ;;
    '-h 1' | '--help 1')
        sed -n '2,/^[^#]/ s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    *)
        echo "demo.sh: unknown: $*; only --real-time is known" >&2
        exit 2
        ;;
esac

root=$(cd "$(dirname "$0")/.." && pwd)
missing=()
for program in git kubectl jq cargo; do command -v "$program" >/dev/null || missing+=("$program"); done
if [ ${#missing[@]} -gt 0 ]; then
    echo "demo.sh: not on the PATH: ${missing[*]}" >&2
    exit 2
fi

group=() scratch=
# Everything was started in process groups of its own and ends with them.
leave() {
    local code=$?
    trap - EXIT INT TERM HUP
    for pid in "${group[@]}"; do kill -TERM -- "-$pid" 2>/dev/null || true; done
    wait 2>/dev/null
    [ -z "$scratch" ] || rm -rf "$scratch"
    exit "$code"
}
trap leave EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# start COMMAND…: in the background, in a process group of its own, so that a signal is not kept waiting
start() {
    set -m
    "$@" &
    set +m
    group+=($!)
}
finish() {
    local code=0
    wait "${group[-1]}" || code=$?
    unset 'group[-1]'
    return "$code"
}

cd "$root"
echo "Building the four commands and the stand-in ..." >&2
start cargo build --quiet --locked --workspace --bins
finish
built=$(cargo metadata --locked --no-deps --format-version 1 | jq -r .target_directory)/debug
scratch=$(mktemp -d)
mkdir "$scratch/bin"
for plugin in argo-resync argo-webhook argo-waitrev; do
    ln -s "$built/kubectl-$plugin" "$scratch/bin/kubectl-$plugin"
    ln -s "$built/kubectl-$plugin" "$scratch/bin/kubectl-${plugin//-/_}"
done
ln -s "$built/git-evt-push" "$scratch/bin/git-evt-push"
export PATH="$scratch/bin:$PATH"
