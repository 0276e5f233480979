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

rules=$(dirname "$0")/check-lab.jq
[ -r "$rules" ] || die "$rules is not there: it belongs beside this script"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 2' INT TERM HUP

kube() { kubectl "$@" ${context:+--context "$context"}; }

git() { command git --git-dir "$dir/repo/.git" "$@" 2>/dev/null; }
# What is missing or not JSON is null; an artifact is one value.
json() { { jq --compact-output . "$1" 2>/dev/null || true; } | jq --slurp 'if length == 1 then .[0] else null end'; }
text() { if [ -f "$1" ]; then jq --raw-input --slurp . "$1"; else echo null; fi; }

kube create --dry-run=client --validate=false --output json --filename "$dir/app.yaml" >"$tmp/app" 2>/dev/null || true
app=$(jq -r '.metadata.name // "evt"' "$tmp/app")
namespace=$(jq -r '.metadata.namespace // "argocd"' "$tmp/app")
app=${app:-evt} namespace=${namespace:-argocd}
kube get applications.argoproj.io "$app" --namespace "$namespace" --output json >"$tmp/live" ||
    die "cannot read Application $namespace/$app"
kube get configmap argocd-cm --namespace "$namespace" --output json >"$tmp/cm" || die "cannot read $namespace/argocd-cm"

commits() {
    for commit in $(git rev-list --reverse --topo-order HEAD); do
        echo "$commit $(git show "$commit:app/signal.yaml" | sed -n 's/^  rev: *//p')"
    done | jq --raw-input --slurp 'split("\n") | map(select(. != "") | split(" ") | {id: .[0], rev: .[1]})'
}
# What is known about the key, and not the key.
secret_file() {
    [ -s "$dir/webhook-secret" ] || { echo null && return; }
    private=false
    [ -z "$(find "$dir/webhook-secret" -perm 600)" ] || private=true
    # shellcheck disable=SC2016 # the dollars are jq's
    kube get secret argocd-secret --namespace "$namespace" --output json |
        jq --rawfile file "$dir/webhook-secret" --argjson private "$private" '{
            hex: ($file | test("^[0-9a-f]{32}\n?$")),
            $private,
            set: ((.data["webhook.github.secret"] // "" | @base64d) == ($file | rtrimstr("\n")))
        }'
}
{
    for name in poll nopoll webhook secret report; do printf '"%s":' $name && json "$dir/$name.json" && echo ,; done
    for name in interval restored; do printf '"%s":' $name && text "$dir/$name.txt" && echo ,; done
    for name in app live cm; do printf '"%s":' $name && json "$tmp/$name" && echo ,; done
    printf '"commits":' && commits && echo ,
    printf '"signal":' && git show HEAD:app/signal.yaml | jq --raw-input --slurp . && echo ,
    printf '"pushed":' && if git merge-base --is-ancestor HEAD origin/main; then echo true,; else echo false,; fi
    printf '"secret_file":' && secret_file
} >"$tmp/found"
# shellcheck disable=SC2016 # the dollars are jq's
verdict=$( { echo '{' && cat "$tmp/found" && echo '}'; } | jq --arg namespace "$namespace" --arg name "$namespace/$app" \
    --arg poll_period "$poll_period" --arg no_poll_watch "$no_poll_watch" --arg safety_net "$safety_net" \
    '. + {$namespace, $name, $poll_period, $no_poll_watch, $safety_net}' | jq --raw-output --from-file "$rules") ||
    die "the artifacts cannot be judged"
printf '%s\n' "$verdict"
case $verdict in *FAIL*) exit 1 ;; esac
