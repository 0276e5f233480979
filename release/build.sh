#!/bin/sh
# Builds the four commands as they are released, and prints the folder that they are in.
# usage: release/build.sh [--target TRIPLE] [--package COMMAND]
set -eu

triple=
package=
while [ $# -gt 0 ]; do
    case $1 in
    --target) triple=$2 ;;
    --package) package=$2 ;;
    *) echo "error: unknown argument $1" >&2 && exit 2 ;;
    esac
    shift 2
done

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
out=${CARGO_TARGET_DIR:-$root/target}
case $out in
/*) ;;
*) out=$PWD/$out ;;
esac
cd "$root"

# The same bytes wherever the sources and the crates lie.
unit=$(printf '\037')
flags=$(printf '%s' "${RUSTFLAGS-}" | tr ' ' "$unit")
flags=$flags${flags:+$unit}--remap-path-prefix=$root=.
flags=$flags$unit--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo
export CARGO_ENCODED_RUSTFLAGS="$flags"
unset CARGO_BUILD_TARGET

build() {
    cargo build --release --locked --target-dir "$out" ${triple:+--target "$triple"} "$@" >&2
}

if [ -n "$package" ]; then
    build --package "$package"
else
    # Apart, since features unify: together, git-evt-push would bring the Kubernetes client.
    build --package git-evt-push
    build --package kubectl-argo-resync --package kubectl-argo-waitrev --package kubectl-argo-webhook
fi
echo "$out${triple:+/$triple}/release"
