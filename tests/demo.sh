#!/usr/bin/env bash
# The whole lab against the stand-in, with git pushes over HTTP; nothing but the loopback address is used.
#
#   tests/demo.sh [--real-time]
#
# The periods are shortened to fit into a minute; --real-time takes those of the lab: 30 s, 40 s, 15 s, 120 s.
set -euo pipefail

poll_period=5s no_poll_watch=12s unsigned_watch=4s
case "$*" in
    '') ;;
    --real-time) poll_period=30s no_poll_watch=40s unsigned_watch=15s ;;
    -h | --help)
        sed -n '2,/^set/ s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    *)
        echo "demo.sh: $* is unknown: there is only --real-time" >&2
        exit 2
        ;;
esac

root=$(cd "$(dirname "$0")/.." && pwd)
missing=
for program in git kubectl jq cargo; do command -v "$program" >/dev/null || missing="$missing $program"; done
[ -z "$missing" ] || {
    echo "demo.sh: not on the PATH:$missing" >&2
    exit 2
}

standin='' job='' scratch=''
leave() {
    local code=$?
    trap - EXIT INT TERM HUP
    for group in $job $standin; do kill -TERM -- "-$group" 2>/dev/null || true; done
    wait || true
    [ -z "$scratch" ] || rm -rf "$scratch"
    exit "$code"
}
trap leave EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# Starts a command in a process group of its own: it is ended with everything that it started, and a signal to this
# script need not wait for it.
start() {
    set -m
    "$@" &
    set +m
    job=$!
}
run() {
    start "$@"
    local code=0
    wait "$job" || code=$?
    job=
    return "$code"
}

cd "$root"
echo "Building the four commands and the stand-in ..." >&2
run cargo build --quiet --locked --workspace --bins
built=$(cargo metadata --locked --no-deps --format-version 1 | jq -r .target_directory)/debug
scratch=$(mktemp -d)
mkdir "$scratch/bin"
for plugin in argo-resync argo-webhook argo-waitrev; do
    ln -s "$built/kubectl-$plugin" "$scratch/bin/kubectl-$plugin"
    ln -s "$built/kubectl-$plugin" "$scratch/bin/kubectl-${plugin//-/_}"
done
ln -s "$built/git-evt-push" "$scratch/bin/git-evt-push"
export PATH="$scratch/bin:$PATH"

start cargo run --quiet --locked --package standin >"$scratch/standin.json"
standin=$job job=
until [ -s "$scratch/standin.json" ]; do
    kill -0 "$standin" 2>/dev/null || {
        echo "demo.sh: the stand-in did not start" >&2
        exit 1
    }
    sleep 0.1
done
kubeconfig=$(jq -r .kubeconfig "$scratch/standin.json")
git_url=$(jq -r .git_url "$scratch/standin.json")evt.git
bare=$(jq -r .git_root "$scratch/standin.json")/evt.git
echo "The stand-in for Kubernetes and Argo CD runs at $(jq -r .server "$scratch/standin.json")" >&2

artifacts=$built/demo
rm -rf "$artifacts"
run share/argo-evt/lab.sh --dir "$artifacts" --kubeconfig "$kubeconfig" \
    --bare "$bare" --push-url "$git_url" --repo-url "$git_url" \
    --poll-period "$poll_period" --no-poll-watch "$no_poll_watch" --unsigned-watch "$unsigned_watch"
echo >&2
echo "Checking the artifacts ..." >&2
run share/argo-evt/check-lab.sh "$artifacts" --kubeconfig "$kubeconfig" \
    --poll-period "$poll_period" --no-poll-watch "$no_poll_watch" >&2
echo >&2
jq . "$artifacts/report.json"
echo "The artifacts are in $artifacts" >&2
