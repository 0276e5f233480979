#!/bin/sh
# Writes version, uri and sha256 of a release into the krew manifests.
# usage: release/manifests.sh [--partial] VERSION URI SUMS FILE...
# URI is the folder that the archives are downloaded from, SUMS the SHA256SUMS of the release. With --partial a platform
# whose archive is not in SUMS gets zeros, which krew accepts in a manifest and never in an archive; without, it is an
# error.
set -eu

partial=
if [ "${1-}" = --partial ]; then
    partial=yes
    shift
fi
[ $# -ge 4 ] || {
    sed -n '3p' "$0" | cut -c3- >&2
    exit 2
}
version=$1
uri=$2
sums=$3
shift 3

for file in "$@"; do
    awk -v version="$version" -v uri="${uri%/}" -v sums="$sums" -v partial="$partial" '
        BEGIN {
            while ((read = getline line <sums) > 0) {
                split(line, part, /  /)
                sum[part[2]] = part[1]
            }
            if (read < 0) { print "error: cannot read " sums >"/dev/stderr"; exit 1 }
        }
        $1 == "os:" { os = $2 }
        $1 == "arch:" { arch = $2 }
        $1 == "version:" { sub(/version:.*/, "version: " version) }
        $1 == "uri:" {
            archive = "argo-evt-" version "-" os "-" arch ".tar.gz"
            sub(/uri:.*/, "uri: " uri "/" archive)
        }
        $1 == "sha256:" {
            if (!(archive in sum) && !partial) { print "error: " sums " has no " archive >"/dev/stderr"; exit 1 }
            value = archive in sum ? sum[archive] : sprintf("%064d", 0)
            sub(/sha256:.*/, "sha256: \"" value "\"")
        }
        { print }
    ' "$file" >"$file.new" || {
        rm -f "$file.new"
        exit 1
    }
    mv "$file.new" "$file"
done
