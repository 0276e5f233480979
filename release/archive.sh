#!/bin/sh
# Makes the release archive of one platform: DIR/argo-evt-VERSION-OS-ARCH.tar.gz, and adds it to DIR/SHA256SUMS.
# usage: release/archive.sh [--target TRIPLE] [--out DIR]
# The archive is the same, byte for byte, whenever and wherever it is made from a commit with the same Rust.
set -eu
umask 022

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
out=$root/dist
triple=
while [ $# -gt 0 ]; do
    case $1 in
    --target) triple=$2 ;;
    --out) out=$2 ;;
    *) echo "error: unknown argument $1" >&2 && exit 2 ;;
    esac
    shift 2
done

platform=${triple:-$(rustc -vV | sed -n 's/^host: //p')}
case $platform in
*-linux-*) os=linux ;;
*-apple-darwin) os=darwin ;;
*) echo "error: there is no release for $platform" >&2 && exit 2 ;;
esac
case $platform in
x86_64-*) arch=amd64 ;;
aarch64-*) arch=arm64 ;;
*) echo "error: there is no release for $platform" >&2 && exit 2 ;;
esac

tar=tar
command -v gtar >/dev/null && tar=gtar
$tar --version | grep -q GNU || {
    echo 'error: needs GNU tar, which can sort and set times (macOS: brew install gnu-tar)' >&2
    exit 1
}
sums=sha256sum
command -v sha256sum >/dev/null || sums='shasum -a 256'

version=$(sed -n 's/^version = "\(.*\)"$/v\1/p' "$root/Cargo.toml")
name=argo-evt-$version-$os-$arch
time=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct)}
commands=$(sh "$root/release/build.sh" ${triple:+--target "$triple"})

mkdir -p "$out"
out=$(CDPATH='' cd -- "$out" && pwd -P)
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
mkdir -p "$stage/$name/bin"
for command in git-evt-push kubectl-argo-resync kubectl-argo-waitrev kubectl-argo-webhook; do
    cp "$commands/$command" "$stage/$name/bin/"
done
cp -R "$root/LICENSE" "$root/README.md" "$root/install.sh" "$root/completions" "$root/share" "$stage/$name/"
chmod -R u=rwX,go=rX "$stage/$name"
# shellcheck disable=SC2086 # a command and its flags
(cd "$stage/$name" && find . -type f | LC_ALL=C sort | xargs $sums >../sums && mv ../sums SHA256SUMS)

$tar -C "$stage" --sort=name --format=ustar --mtime="@$time" --owner=0 --group=0 --numeric-owner -cf - "$name" |
    gzip -9n >"$stage/$name.tar.gz"
mv "$stage/$name.tar.gz" "$out/"
# shellcheck disable=SC2086
(cd "$out" && $sums argo-evt-"$version"-*.tar.gz >SHA256SUMS)
echo "$out/$name.tar.gz"
