#!/bin/sh
# Grades what lab.sh left: keys and types, the files against each other, against the commits in repo/, and against
# what Argo CD itself recorded.
set -eu

usage() {
    cat <<'END'
Grade the artifacts of the lab

Usage: check-lab.sh DIR [flags]

Holds the eight artifacts in DIR against each other, against the commits in DIR/repo, and against the cluster:
the Application's status.history, argocd-cm, argocd-secret. Prints a line for each artifact, and for each fault the
artifact and the reason.

      --poll-period D      as given to lab.sh [30s]
      --no-poll-watch D    as given to lab.sh [40s]
      --safety-net D       as given to lab.sh [120s]
      --kubeconfig FILE    kubeconfig to use
      --context NAME       context of the kubeconfig

Exit status: 0 everything holds, 1 something does not, 2 it could not be checked.
END
}

die() {
    printf 'check-lab.sh: %s\n' "$1" >&2
    exit 2
}

dir='' context='' poll_period=30s no_poll_watch=40s safety_net=120s
while [ $# -gt 0 ]; do
    case $1 in
        -h | --help) usage && exit 0 ;;
        --*=*)
            flag=${1%%=*} value=${1#*=}
            shift
            set -- "$flag" "$value" "$@"
            ;;
        --*) ;;
        *)
            [ -z "$dir" ] || die "one directory only: $dir, or $1?"
            dir=$1
            shift
            continue
            ;;
    esac
    [ $# -gt 1 ] || die "$1 needs a value, or is no flag: see --help"
    case $1 in
        --poll-period) poll_period=$2 ;;
        --no-poll-watch) no_poll_watch=$2 ;;
        --safety-net) safety_net=$2 ;;
        --kubeconfig) export KUBECONFIG="$2" ;;
        --context) context=$2 ;;
        *) die "unknown flag $1: see --help" ;;
    esac
    shift 2
done
[ -n "$dir" ] || die "which directory? see --help"
[ -d "$dir" ] || die "$dir is not a directory"
missing=
for program in git kubectl jq; do command -v "$program" >/dev/null || missing="$missing $program"; done
[ -z "$missing" ] || die "not on the PATH:$missing"

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 2' INT TERM HUP

kube() { kubectl "$@" ${context:+--context "$context"}; }

faults=0 artifact='' sound=true
begin() { artifact=$1 sound=true; }
fault() {
    printf 'FAIL %s: %s\n' "$artifact" "$1"
    sound=false faults=$((faults + 1))
}
end() { [ "$sound" = false ] || printf 'ok   %s\n' "$artifact"; }

# Everything that is known, as one document for jq; what is missing or not JSON is null.
json() { jq --compact-output . "$1" 2>/dev/null | jq --slurp 'if length == 1 then .[0] else null end'; }
text() { if [ -f "$1" ]; then jq --raw-input --slurp . "$1"; else echo null; fi; }
kube create --dry-run=client --validate=false --output json --filename "$dir/app.yaml" >"$tmp/app.yaml" 2>/dev/null ||
    echo null >"$tmp/app.yaml"
app=$(jq -r '.metadata.name // "evt"' "$tmp/app.yaml")
namespace=$(jq -r '.metadata.namespace // "argocd"' "$tmp/app.yaml")
kube get applications.argoproj.io "$app" --namespace "$namespace" --output json >"$tmp/live" ||
    die "cannot read Application $namespace/$app"
kube get configmap argocd-cm --namespace "$namespace" --output json >"$tmp/cm" || die "cannot read $namespace/argocd-cm"
for name in poll nopoll webhook secret report; do json "$dir/$name.json" >"$tmp/$name"; done
for name in interval restored; do text "$dir/$name.txt" >"$tmp/$name"; done
for name in app.yaml live cm poll nopoll webhook secret report interval restored; do
    jq --arg name "$name" '{($name): .}' "$tmp/$name"
done | jq --slurp --arg poll_period "$poll_period" --arg no_poll_watch "$no_poll_watch" --arg safety_net "$safety_net" \
    'add + {$poll_period, $no_poll_watch, $safety_net}' >"$tmp/all"

# shellcheck disable=SC2016 # the dollars are jq's
rules='
def commit_id: type == "string" and test("^([0-9a-f]{40}|[0-9a-f]{64})$");
def unix_time: type == "number" and . > 1e9 and . < 1e11;
def http_status: type == "number" and . >= 100 and . < 600;
def number: type == "number";
def boolean: type == "boolean";
def string: type == "string";
def seconds:
    if test("^[0-9]+$") then tonumber
    else [scan("([0-9.]+)(h|ms|m|s)")] | map((.[0] | tonumber) * {h: 3600, m: 60, s: 1, ms: 0.001}[.[1]]) | add
    end;
def lines: split("\n") | map(select(. != ""));
def period_is(text; asked):
    (asked | seconds) as $asked | text | lines | length > 0 and all(
        [scan("appResyncPeriod=([0-9hms]+), appHardResyncPeriod=")] | length == 1 and (.[0][0] | seconds) == $asked);
def history: .live.status.history // [];
# A full history has lost its oldest entries.
def recorded(commit): commit as $commit | history | any(.revision == $commit) or length >= 10;
# A clock may be a little off.
def deployed_since(commit; seen): commit as $commit | seen as $seen | history
    | map(select(.revision == $commit) | .deployedAt | fromdateiso8601) | all(. >= $seen - 10);
'
query() { jq --raw-output "$rules $1" "$tmp/all" 2>/dev/null || true; }
# holds FILTER REASON
holds() { [ "$(query "$1")" = true ] || fault "$2"; }
# keys NAME KEY TYPE …
keys() {
    name=$1
    shift
    [ "$(query ".[\"$name\"] | type == \"object\"")" = true ] || {
        fault "missing, or not one JSON object"
        return 0
    }
    while [ $# -gt 0 ]; do
        if [ "$(query ".[\"$name\"] | has(\"$1\")")" != true ]; then
            fault "key $1 is missing"
        elif [ "$(query ".[\"$name\"].$1 | $2")" != true ]; then
            fault "$1 is no $(echo "$2" | tr _ ' '): $(query ".[\"$name\"].$1 | tojson")"
        fi
        shift 2
    done
}

git() { command git --git-dir "$dir/repo/.git" "$@" 2>/dev/null; }
rev_of() { git show "$1:app/signal.yaml" | sed -n 's/^  rev: *//p'; }
# says KEY REV: the commit under that key of the document is in repo/ and says so
says() {
    commit=$(query "$1")
    if ! git cat-file -e "$commit^{commit}"; then
        fault "$1: $commit is not a commit of repo/"
    elif [ "$(rev_of "$commit")" != "$2" ]; then
        fault "$1: commit $commit says rev $(rev_of "$commit"), not $2"
    fi
}
# after A B: commit B has A in its past
after() {
    a=$(query "$1") b=$(query "$2")
    { [ "$a" != "$b" ] && git merge-base --is-ancestor "$a" "$b"; } || fault "$2 ($b) does not come after $1 ($a) in repo/"
}
# deployed COMMIT SEEN: Argo CD recorded the commit, and not before it was seen there
deployed() {
    holds "recorded($1)" "$1 is not in status.history of $namespace/$app"
    holds "deployed_since($1; $2)" "$2 is later than deployedAt in status.history of $namespace/$app"
}

begin repo/
if ! git rev-parse --verify --quiet HEAD >/dev/null; then
    fault "missing, or not a Git repository with commits"
else
    signal=$(git show HEAD:app/signal.yaml) || fault "app/signal.yaml is not committed"
    printf '%s\n' "$signal" | grep -q '^kind: ConfigMap$' || fault "app/signal.yaml is not a ConfigMap"
    printf '%s\n' "$signal" | grep -q '^  name: signal$' || fault "the ConfigMap in app/signal.yaml is not named signal"
    printf '%s\n' "$signal" | grep -q '^  namespace:' && fault "the ConfigMap in app/signal.yaml has a namespace"
    git merge-base --is-ancestor HEAD origin/main || fault "HEAD is not pushed to main"
    first=false
    for commit in $(git rev-list HEAD -- app/signal.yaml); do [ "$(rev_of "$commit")" != r1 ] || first=true; done
    [ "$first" = true ] || fault "no commit says rev r1"
fi
end

begin app.yaml
holds '.["app.yaml"] | .kind == "Application"' "missing, or not an Application that kubectl can read"
if [ "$sound" = true ]; then
    holds '.["app.yaml"].spec.project == "default"' "project is not default"
    holds '.["app.yaml"].spec.source.targetRevision == "main"' "targetRevision is not main"
    holds '.["app.yaml"].spec.source.path == "app"' "path is not app"
    holds '.["app.yaml"].spec.destination.namespace | type == "string"' "the destination has no namespace"
    holds '.["app.yaml"].spec.syncPolicy.automated | .prune and .selfHeal' "automated sync without prune and selfHeal"
    holds '.["app.yaml"].spec.syncPolicy.syncOptions // [] | any(. == "CreateNamespace=true")' "CreateNamespace=true is missing"
    holds '.["app.yaml"].spec.source == .live.spec.source' "source is not that of $namespace/$app in the cluster"
fi
end

begin interval.txt
holds '.interval | type == "string"' "missing"
if [ "$sound" = true ]; then
    holds '.interval | test("appResyncPeriod=")' "not the appResyncPeriod line of the controller's log"
    holds 'period_is(.interval; .poll_period)' \
        "the period is not $poll_period"
    holds '.interval | lines | all(test("appResyncJitter=(?!0s)") | not)' "the jitter is not 0s"
fi
end

begin poll.json
keys poll commit commit_id pushed_at unix_time synced_at unix_time
if [ "$sound" = true ]; then
    says .poll.commit r2
    holds '.poll | .synced_at >= .pushed_at' "synced_at is before pushed_at"
    holds '.poll.refresh_requested != true' "a refresh was requested during the wait, so it did not measure polling"
    deployed .poll.commit .poll.synced_at
fi
end

begin nopoll.json
keys nopoll commit commit_id pushed_at unix_time checked_at unix_time revision_at_check commit_id
if [ "$sound" = true ]; then
    says .nopoll.commit r3
    holds '.nopoll | .revision_at_check != .commit' "the Application reached the commit although polling was off"
    says .nopoll.revision_at_check r2
    after .poll.commit .nopoll.commit
    holds '.nopoll.pushed_at >= .poll.synced_at' "pushed_at is before synced_at of poll.json"
    holds '.nopoll.checked_at - .nopoll.pushed_at >= (.no_poll_watch | seconds)' "checked_at is less than $no_poll_watch after pushed_at"
fi
end

begin webhook.json
keys webhook http_status http_status sent_at unix_time synced_at unix_time
if [ "$sound" = true ]; then
    holds '.webhook.http_status == 200' "http_status is not 200"
    holds '.webhook | .synced_at >= .sent_at' "synced_at is before sent_at"
    holds '.webhook.sent_at >= .nopoll.checked_at' "sent_at is before checked_at of nopoll.json"
    holds '.webhook.commit == null or .webhook.commit == .nopoll.commit' "commit is not that of nopoll.json"
    deployed .nopoll.commit .webhook.synced_at
fi
end

begin webhook-secret
if [ ! -s "$dir/webhook-secret" ]; then
    fault "missing"
else
    tr -d '\n' <"$dir/webhook-secret" | grep -Eqx '[0-9a-f]{32}' || fault "not 16 bytes in lower-case hex"
    [ -n "$(find "$dir/webhook-secret" -perm 600)" ] || fault "not for its owner only (mode 0600)"
    # shellcheck disable=SC2016 # the dollars are jq's
    kube get secret argocd-secret --namespace "$namespace" --output json |
        jq --exit-status --rawfile file "$dir/webhook-secret" \
            '.data["webhook.github.secret"] // "" | @base64d == ($file | rtrimstr("\n"))' >/dev/null ||
        fault "not the webhook.github.secret of $namespace/argocd-secret"
fi
end

begin secret.json
keys secret commit commit_id unsigned_status http_status signed_status http_status \
    revision_after_unsigned commit_id signed_synced_at unix_time
if [ "$sound" = true ]; then
    says .secret.commit r4
    after .nopoll.commit .secret.commit
    holds '.secret.unsigned_status | . >= 400 and . < 500' "the unsigned event was not refused"
    holds '.secret.signed_status == 200' "signed_status is not 200"
    holds '.secret | .revision_after_unsigned != .commit' "the Application reached the commit after the unsigned event"
    says .secret.revision_after_unsigned r3
    holds '.secret | .unsigned_body_sha256 == .signed_body_sha256' "the signed event was not the same bytes"
    holds '.secret.signed_synced_at >= .webhook.synced_at' "signed_synced_at is before synced_at of webhook.json"
    deployed .secret.commit .secret.signed_synced_at
fi
end

begin restored.txt
holds '.restored | type == "string"' "missing"
if [ "$sound" = true ]; then
    holds '.restored | test("appResyncPeriod=")' "not the appResyncPeriod line of the controller's log"
    holds 'period_is(.restored; .safety_net)' \
        "the period is not $safety_net"
    holds '.restored != .interval' "the same line as interval.txt"
    holds '(.safety_net | seconds) == (.cm.data["timeout.reconciliation"] // "" | seconds)' \
        "timeout.reconciliation of argocd-cm is not $safety_net"
    holds '.cm.data | has("timeout.reconciliation.jitter") | not' "argocd-cm still has timeout.reconciliation.jitter"
fi
end

begin report.json
keys report poll_seconds number nopoll_synced boolean webhook_seconds number unsigned_accepted boolean \
    trigger string safety_net string
if [ "$sound" = true ]; then
    holds '.report.poll_seconds == .poll.synced_at - .poll.pushed_at' "poll_seconds is not what poll.json says"
    holds '.report.nopoll_synced == (.nopoll | .revision_at_check == .commit)' "nopoll_synced is not what nopoll.json says"
    holds '.report.webhook_seconds == .webhook.synced_at - .webhook.sent_at' "webhook_seconds is not what webhook.json says"
    holds '.report.unsigned_accepted == (.secret | .unsigned_status < 400 or .revision_after_unsigned == .commit)' \
        "unsigned_accepted is not what secret.json says"
    holds '.report.trigger == "webhook"' "trigger is not webhook"
    holds '.report.safety_net == "timeout.reconciliation"' "safety_net is not timeout.reconciliation"
fi
end

[ "$faults" -eq 0 ] || exit 1
