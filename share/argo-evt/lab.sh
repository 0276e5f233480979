#!/bin/sh
# The lab: eight steps that measure polling against webhooks on one Argo CD Application, and prove that both work.
# `lab.sh --help` says what each step does and which file it leaves.
set -eu

usage() {
    cat <<'END'
Measure how Argo CD learns of a commit: by polling Git, and by a webhook

Usage: lab.sh [--from N] [--to N] [flags]

  step  what happens                                                     leaves in the directory
  1     a Git repository with one ConfigMap, and an Application for it   repo/ app.yaml
  2     the polling period made short, proven by the controller's log    interval.txt
  3     commit r2 is found by polling                                    poll.json
  4     polling is turned off: commit r3 stays unseen                    nopoll.json
  5     a webhook tells Argo CD of r3                                    webhook.json
  6     a secret: an unsigned event is refused, a signed one accepted    webhook-secret secret.json
  7     polling is turned on again, as a safety net                      restored.txt
  8     the report                                                       report.json

Each step can be repeated. Interrupting is safe: run the lab again, or continue with --from.

Steps:
      --from N                first step [1]
      --to N                  last step [8]
Where:
      --dir DIR               directory of the artifacts [/root/cgoa-evt]
      --bare DIR              bare repository to push to, made when absent [/srv/bare/evt.git]
      --push-url URL          remote to push to instead; with --bare, the address of that bare repository
      --repo-url URL          the repository as Argo CD reads it
                              [http://githttp.gitsrv.svc.cluster.local/cgi-bin/git/evt.git]
      --app NAME              Application to make [evt]
      --dest-namespace NAME   namespace that the Application deploys to [evt]
  -n, --namespace NAME        namespace of Argo CD [argocd]
      --kubeconfig FILE       kubeconfig to use
      --context NAME          context of the kubeconfig
Times:
      --poll-period D         polling period of steps 2 and 3 [30s]
      --no-poll-watch D       how long step 4 watches for nothing to happen [40s]
      --unsigned-watch D      how long step 6 watches after the unsigned event [15s]
      --safety-net D          polling period that step 7 leaves behind [120s]
      --timeout D             how long to wait for anything else [300s]

Needs git, kubectl, jq and the four commands of argo-evt. The exit code is that of the command that failed.
END
}

say() { printf '%s\n' "$*" >&2; }
die() {
    printf 'lab.sh: %s\n' "$1" >&2
    exit "$2"
}

from=1 to=8
dir=/root/cgoa-evt bare='' push_url=''
repo_url=http://githttp.gitsrv.svc.cluster.local/cgi-bin/git/evt.git
app=evt dest_namespace=evt namespace=argocd context=''
poll_period=30s no_poll_watch=40s unsigned_watch=15s safety_net=120s timeout=''

while [ $# -gt 0 ]; do
    case $1 in
        -h | --help) usage && exit 0 ;;
        --*=*)
            flag=${1%%=*} value=${1#*=}
            shift
            set -- "$flag" "$value" "$@"
            ;;
    esac
    [ $# -gt 1 ] || die "$1 needs a value, or is no flag: see --help" 2
    case $1 in
        --from) from=$2 ;;
        --to) to=$2 ;;
        --dir) dir=$2 ;;
        --bare) bare=$2 ;;
        --push-url) push_url=$2 ;;
        --repo-url) repo_url=$2 ;;
        --app) app=$2 ;;
        --dest-namespace) dest_namespace=$2 ;;
        -n | --namespace) namespace=$2 ;;
        --kubeconfig) export KUBECONFIG="$2" ;;
        --context) context=$2 ;;
        --poll-period) poll_period=$2 ;;
        --no-poll-watch) no_poll_watch=$2 ;;
        --unsigned-watch) unsigned_watch=$2 ;;
        --safety-net) safety_net=$2 ;;
        --timeout) timeout=$2 ;;
        *) die "unknown flag $1: see --help" 2 ;;
    esac
    [ -n "$2" ] || die "$1 has an empty value" 2
    shift 2
done

for number in "$from" "$to"; do
    case $number in [1-8]) ;; *) die "there is no step $number: they are 1 to 8" 2 ;; esac
done
[ "$from" -le "$to" ] || die "--from $from comes after --to $to" 2
for duration in "$poll_period" "$no_poll_watch" "$unsigned_watch" "$safety_net" "${timeout:-0}"; do
    case $duration in
        *[!0-9.hms]* | [!0-9]*) die "$duration is not a duration such as 30s, 2m30s or 1h (a bare number is seconds)" 2 ;;
    esac
done
[ -n "$push_url" ] || bare=${bare:-/srv/bare/evt.git}

missing=
for program in git kubectl jq git-evt-push kubectl-argo_resync kubectl-argo_webhook kubectl-argo_waitrev; do
    command -v "$program" >/dev/null || missing="$missing $program"
done
[ -z "$missing" ] || die "not on the PATH:$missing" 2

step=0 tmp=
# The exit code of whatever ends the lab decides what is said last.
leave() {
    code=$?
    [ -z "$tmp" ] || rm -rf "$tmp"
    [ "$code" -ne 0 ] && [ "$step" -ne 0 ] || return 0
    say "lab.sh: step $step was not finished (exit $code): continue with --from $step"
    if [ "$step" -ge 4 ] && [ "$step" -le 7 ]; then
        say "lab.sh: polling may be off until step 7; to turn it on now: $(typed resync "$safety_net" --jitter default)"
    fi
}
trap leave EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# kubectl takes no flags before the name of a plugin.
kube() { kubectl "$@" ${context:+--context "$context"} --namespace "$namespace"; }
# The commands that the lab is about; `showing` prints them instead of running them.
showing=
run() {
    if [ "$namespace" != argocd ]; then set -- "$@" --namespace "$namespace"; fi
    if [ -n "$context" ]; then set -- "$@" --context "$context"; fi
    run_git "$@"
}
run_git() { if [ -n "$showing" ]; then echo "$*"; else "$@"; fi; }
resync() { run kubectl argo-resync "$@" ${timeout:+--timeout "$timeout"}; }
webhook() { run kubectl argo-webhook "$@"; }
wait_for() { run kubectl argo-waitrev "$app" "$@" ${timeout:+--timeout "$timeout"}; }
push() {
    rev=$1
    shift
    run_git git -C "$dir/repo" evt-push --set "data.rev=$rev" app/signal.yaml "$@"
}

# The command as one would type it in the directory of the artifacts.
typed() { (showing=yes && "$@") | sed "s|$tmp/||g; s|$dir/||g"; }
show() { printf '  $ %s\n' "$*" >&2; }
quiet() {
    show "$(typed "$@")"
    "$@" >/dev/null
}
into() {
    file=$1
    shift
    show "$(typed "$@") > $file"
    "$@" >"$tmp/$file"
    keep "$file"
}

# POSIX sh has no pipefail. `left COMMAND | …` keeps the exit code of a command that failed and passes nothing on,
# which the next command takes as an error; `piped $?` after the pipe ends the lab with the first failure.
left() {
    if passed=$("$@"); then printf '%s\n' "$passed"; else echo "$?" >"$tmp/left"; fi
}
piped() {
    [ ! -s "$tmp/left" ] || exit "$(cat "$tmp/left")"
    [ "$1" -eq 0 ] || exit "$1"
}

# An artifact is written whole or not at all.
keep() { mv "$tmp/$1" "$dir/$1"; }
value() { jq -r "$2" "$dir/$1"; }
need() {
    [ ! -s "$dir/$1" ] || return 0
    step=0
    die "$dir/$1 is not there: step $2 makes it (--from $2)" 2
}
status() { kube get applications.argoproj.io "$app" -o jsonpath="{.status.$1}"; }
setting() { kube get configmap argocd-cm -o jsonpath='{.data.timeout\.reconciliation}'; }
rev_of() { git -C "$dir/repo" show "$1:app/signal.yaml" | sed -n 's/^  rev: *//p'; }

# A step measures how its own commit arrives, so the commit before has to be deployed. It is, unless a step is repeated.
begin_at() {
    need app.yaml 1
    head=$(git -C "$dir/repo" rev-parse HEAD)
    if [ "$(rev_of "$head")" = "$1" ] && [ "$(status sync.revision)" = "$head" ]; then return; fi
    say "This step starts with $1 deployed, which it is not: first back to $1."
    into back.json push "$1" --allow-empty
    refresh back.json
}

refresh() {
    quiet resync --hard-refresh "$app"
    quiet wait_for -f "$dir/$1" --until synced
}

# What the hard refresh read of Git is cached for one period, and the poll within that period finds nothing to do: a
# commit pushed now would wait for two periods. Pushed when the cache has aged, it is found by the next poll.
let_the_cache_age() {
    seconds=$(jq -nr --arg time "$poll_period" '$time | if test("^[0-9]+$") then tonumber else
        [scan("([0-9.]+)(h|ms|m|s)") | (.[0] | tonumber) * {h: 3600, m: 60, s: 1, ms: 0.001}[.[1]]] | add end | ceil')
    say "What the refresh read of Git is cached for $poll_period. Waiting until it has aged ..."
    sleep "$((seconds + 1))"
}

step_1() {
    say "Git says what should run; an Application tells Argo CD where to read it."
    if [ -n "$bare" ] && [ ! -d "$bare/objects" ]; then
        mkdir -p "$(dirname "$bare")"
        git init --quiet --bare "$bare"
        git -C "$bare" symbolic-ref HEAD refs/heads/main
        # git http-backend accepts no anonymous push otherwise.
        case $push_url in http*) git -C "$bare" config http.receivepack true ;; esac
    fi
    remote=${push_url:-$bare}
    if [ ! -d "$dir/repo" ]; then
        show "git clone $remote repo"
        git clone --quiet "$remote" "$tmp/repo"
        keep repo
    fi
    git -C "$dir/repo" remote set-url origin "$remote"
    git -C "$dir/repo" rev-parse --quiet --verify HEAD >/dev/null ||
        git -C "$dir/repo" symbolic-ref HEAD refs/heads/main
    git -C "$dir/repo" config evt.repoUrl "${repo_url%.git}"
    git -C "$dir/repo" config user.email >/dev/null || git -C "$dir/repo" config user.email lab@argo-evt.invalid
    git -C "$dir/repo" config user.name >/dev/null || git -C "$dir/repo" config user.name 'argo-evt lab'
    if [ ! -e "$dir/repo/app/signal.yaml" ]; then
        mkdir -p "$dir/repo/app"
        printf '%s\n' 'apiVersion: v1' 'kind: ConfigMap' 'metadata:' '  name: signal' 'data:' '  rev: r1' \
            >"$tmp/signal.yaml"
        mv "$tmp/signal.yaml" "$dir/repo/app/signal.yaml"
    fi
    git -C "$dir/repo" add app/signal.yaml
    into r1.json push r1 --allow-empty

    cat >"$tmp/app.yaml" <<END
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: $app
  namespace: $namespace
spec:
  project: default
  source:
    repoURL: $repo_url
    targetRevision: main
    path: app
  destination:
    server: https://kubernetes.default.svc
    namespace: $dest_namespace
  syncPolicy:
    automated:
      prune: true
      selfHeal: true
    syncOptions:
      - CreateNamespace=true
END
    keep app.yaml
    before=$(kube get applications.argoproj.io "$app" --ignore-not-found -o name)
    show "kubectl apply --filename app.yaml"
    kube apply --filename "$dir/app.yaml" >&2
    # A new Application is compared at once; one that was there before may wait for a poll that never comes.
    if [ -n "$before" ]; then refresh r1.json; else quiet wait_for -f "$dir/r1.json" --until synced; fi
    say "The Application is Synced: what runs in the cluster is commit r1."
}

step_2() {
    need app.yaml 1
    say "Argo CD reads Git every timeout.reconciliation. The controller and the repo-server read that setting only when"
    say "they start, so both are restarted; the controller's own log says which period it runs with."
    set -- "$poll_period" --jitter 0s --hard-refresh "$app" --line-out "$dir/interval.txt"
    # The first run saw the settings from before the lab; `kubectl argo-resync --restore` can put them back.
    if [ -e "$dir/before.json" ]; then quiet resync "$@"; else into before.json resync "$@"; fi
    say "The controller says: $(cat "$dir/interval.txt")"
}

step_3() {
    if [ "$(setting)" != "$poll_period" ]; then
        say "Argo CD does not poll every $poll_period, so step 2 comes first."
        step_2
    fi
    begin_at r1
    let_the_cache_age
    say "A push, and nobody tells Argo CD: it finds the commit with its next poll."
    show "$(typed push r2) | $(typed wait_for -f -) > poll.json"
    code=0
    left push r2 | wait_for -f - >"$tmp/poll.json" || code=$?
    piped "$code"
    keep poll.json
    say "Polling found r2 after $(value poll.json '.synced_at - .pushed_at') s."
}

step_4() {
    begin_at r2
    say "Polling off (a period of 0). A pushed commit should now stay where it is: nothing tells Argo CD to look."
    quiet resync off
    into r3.json push r3
    show "$(typed wait_for -f r3.json --hold "$no_poll_watch") > nopoll.json"
    code=0
    wait_for -f "$dir/r3.json" --hold "$no_poll_watch" >"$tmp/nopoll.json" || code=$?
    # A commit that moved is an answer too, if not the one that the lab is about.
    [ "$code" -gt 1 ] || keep nopoll.json
    [ "$code" -eq 0 ] || exit "$code"
    say "After $(value nopoll.json '.checked_at - .pushed_at') s the Application is still at r2."
}

step_5() {
    need nopoll.json 4
    if [ "$(status sync.revision)" = "$(value nopoll.json .commit)" ]; then
        say "Argo CD knows r3 already; this step needs a commit that it has not seen, so step 4 comes first."
        step_4
    fi
    say "One POST to Argo CD's /api/webhook: not a deployment, only \"read Git now\"."
    set -- -f "$dir/r3.json"
    # An earlier run leaves the secret behind, and the server then refuses what is not signed.
    if kube get secret argocd-secret -o json | jq -e '.data // {} | has("webhook.github.secret")' >/dev/null; then
        say "A webhook secret is set, so the event is signed with it."
        set -- "$@" --sign
    fi
    show "$(typed webhook "$@") | $(typed wait_for -f -) > webhook.json"
    code=0
    left webhook "$@" | wait_for -f - >"$tmp/webhook.json" || code=$?
    piped "$code"
    keep webhook.json
    say "The webhook was answered $(value webhook.json .http_status), and r3 was found after" \
        "$(value webhook.json '.synced_at_ms - .sent_at_ms') ms."
}

step_6() {
    if [ "$(setting)" != 0s ]; then
        say "Polling could find the commit too, so it is turned off first."
        quiet resync off
    fi
    begin_at r3
    say "Anybody can POST to that address. With a shared secret the server accepts only events that carry its HMAC."
    quiet webhook secret set --generate --out "$dir/webhook-secret"
    into r4.json push r4

    say "The event without a signature has to be refused, and the Application has to stay at r3."
    set -- -f "$dir/r4.json" --save-body "$dir/event-body.json" --expect-status 400
    show "$(typed webhook "$@") | $(typed wait_for -f - --hold "$unsigned_watch")"
    code=0
    left webhook "$@" | wait_for -f - --hold "$unsigned_watch" >"$tmp/unsigned.json" || code=$?
    piped "$code"

    say "The same bytes with a signature have to be accepted."
    set -- --body-file "$dir/event-body.json" --sign --secret-file "$dir/webhook-secret"
    show "$(typed webhook "$@") | jq --slurp add r4.json - | $(typed wait_for -f -)"
    code=0
    left webhook "$@" |
        left jq --compact-output --slurp 'select(length == 2) | add' "$dir/r4.json" - |
        wait_for -f - >"$tmp/signed.json" || code=$?
    piped "$code"
    jq --slurp '{
        commit: .[0].commit,
        pushed_at: .[0].pushed_at,
        unsigned_status: .[0].http_status,
        unsigned_sent_at: .[0].sent_at,
        unsigned_body_sha256: .[0].body_sha256,
        revision_after_unsigned: .[0].revision_at_check,
        signed_status: .[1].http_status,
        signed_sent_at: .[1].sent_at,
        signed_body_sha256: .[1].body_sha256,
        signed_synced_at: .[1].synced_at
    }' "$tmp/unsigned.json" "$tmp/signed.json" >"$tmp/secret.json"
    keep secret.json
    say "Unsigned: $(value secret.json .unsigned_status). Signed: $(value secret.json .signed_status), and r4 was found."
}

step_7() {
    need app.yaml 1
    say "A webhook can get lost, and then nothing ever looks again. A slow poll is the safety net; the secret stays."
    quiet resync "$safety_net" --jitter default --hard-refresh "$app" --line-out "$dir/restored.txt"
    say "The controller says: $(cat "$dir/restored.txt")"
}

step_8() {
    need poll.json 3
    need nopoll.json 4
    need webhook.json 5
    need secret.json 6
    jq --slurp '. as [$poll, $nopoll, $webhook, $secret] | {
        poll_seconds: ($poll.synced_at - $poll.pushed_at),
        nopoll_synced: ($nopoll.revision_at_check == $nopoll.commit),
        webhook_seconds: ($webhook.synced_at - $webhook.sent_at),
        unsigned_accepted: ($secret.unsigned_status < 400 or $secret.revision_after_unsigned == $secret.commit),
        trigger: "webhook",
        safety_net: "timeout.reconciliation"
    }' "$dir/poll.json" "$dir/nopoll.json" "$dir/webhook.json" "$dir/secret.json" >"$tmp/report.json"
    keep report.json
    say "$(cat "$dir/report.json")"
}

title() {
    case $1 in
        1) echo 'a repository and an Application' ;;
        2) echo "poll every $poll_period" ;;
        3) echo 'a commit found by polling' ;;
        4) echo 'polling off: a commit that stays unseen' ;;
        5) echo 'the same commit found by a webhook' ;;
        6) echo 'unsigned refused, signed accepted' ;;
        7) echo "poll every $safety_net again" ;;
        8) echo 'the report' ;;
    esac
}

# Nothing is begun where Argo CD cannot be reached.
kube get configmap argocd-cm -o name >/dev/null ||
    die "cannot read argocd-cm in namespace $namespace: is this the right cluster, and is Argo CD installed there?" 3
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
tmp=$(mktemp -d "$dir/.lab.XXXXXX")
while [ "$from" -le "$to" ]; do
    step=$from
    say
    say "Step $step of 8: $(title "$step")"
    "step_$step"
    from=$((from + 1))
done
step=0
say
say "The artifacts are in $dir"
