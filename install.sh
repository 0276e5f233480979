#!/bin/sh
# Installs argo-evt: from a checkout (built with cargo), or from an unpacked release archive.
set -eu
umask 022

usage() {
    cat <<'USAGE'
Usage: install.sh [--prefix DIR] [--dry-run | --uninstall]

Install the argo-evt commands with their completions, man pages and the lab:
from a checkout it builds them with cargo, from an unpacked release archive
it checks and installs what lies beside it.

  --prefix DIR  where to install (default: ~/.local, for root /usr/local)
  --dry-run     say what would be done, and do nothing
  --uninstall   remove exactly what was installed under the prefix
  -h, --help    show this
USAGE
}

die() {
    echo "error: $1" >&2
    [ -z "${2-}" ] || echo "hint: $2" >&2
    exit "${3-1}"
}

prefix=
dry_run=
uninstall=
while [ $# -gt 0 ]; do
    case $1 in
    --prefix)
        [ $# -ge 2 ] || die '--prefix needs a folder' '' 2
        prefix=$2
        shift
        ;;
    --prefix=*) prefix=${1#--prefix=} ;;
    --dry-run) dry_run=yes ;;
    --uninstall) uninstall=yes ;;
    -h | --help) usage && exit ;;
    *) die "unknown argument $1" 'install.sh --help lists them' 2 ;;
    esac
    shift
done

if [ -z "$prefix" ]; then
    if [ "$(id -u)" = 0 ]; then
        prefix=/usr/local
    else
        prefix=${HOME:?set HOME, or pass --prefix}/.local
    fi
fi
case $prefix in
/*) ;;
*) prefix=$PWD/$prefix ;;
esac
prefix=${prefix%/}

root=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
plugins='resync waitrev webhook'

# What is installed, one path under the prefix a line; a folder that the install made ends with a slash.
manifest=share/argo-evt/installed
stage=$prefix/.argo-evt.$$
moving=
folders=
trap 'leave $?' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

leave() {
    trap - EXIT
    if [ -n "$moving" ]; then
        echo 'error: the install did not finish; what was there before is put back' >&2
        put_back
    fi
    rm -rf "$stage"
    printf '%s' "$folders" | remove_folders
    exit "$1"
}

# Refuses to act outside the prefix, whatever the file says.
installed() {
    [ -f "$prefix/$manifest" ] || return 0
    while IFS= read -r path; do
        case /$path/ in
        //* | */../*) echo "warning: $prefix/$manifest names $path, which is left alone" >&2 ;;
        *) printf '%s\n' "$path" ;;
        esac
    done <"$prefix/$manifest"
}

# Reads folders, and removes those that are empty, the innermost first.
remove_folders() {
    sort -r | while IFS= read -r path; do
        case $path in
        ./) rmdir "$prefix" 2>/dev/null || : ;;
        *) rmdir "$prefix/$path" 2>/dev/null || : ;;
        esac
    done
}

remove() {
    if [ ! -f "$prefix/$manifest" ]; then
        echo "nothing is installed under $prefix"
        return
    fi
    list=$(installed)
    left=
    while IFS= read -r path; do
        case $path in
        "" | */ | "$manifest") continue ;;
        esac
        if [ -n "$dry_run" ]; then
            echo "would remove $prefix/$path"
        else
            rm -f "$prefix/$path" || left=yes
        fi
    done <<LIST
$list
LIST
    [ -z "$left" ] || die 'some files could not be removed' 'run it again as the user who installed them'
    if [ -n "$dry_run" ]; then
        echo "would remove $prefix/$manifest"
        return
    fi
    rm -f "$prefix/$manifest" || die "cannot remove $prefix/$manifest"
    printf '%s\n' "$list" | grep '/$' | remove_folders
    echo "removed argo-evt from $prefix"
}

# The folder of the commands: built here, or beside this file and as they were released.
find_commands() {
    if [ -f "$root/Cargo.toml" ]; then
        commands=$root/target/release
        [ -z "$dry_run" ] || return 0
        command -v cargo >/dev/null || die 'cargo is not on the PATH' 'install Rust, or use a release archive'
        commands=$(sh "$root/release/build.sh") || die 'the commands do not build'
    elif [ -f "$root/SHA256SUMS" ]; then
        commands=$root/bin
        check_sums
    else
        die "$root is neither a checkout nor a release archive" 'run install.sh from where it was unpacked'
    fi
}

check_sums() {
    if command -v sha256sum >/dev/null; then
        sums=sha256sum
    elif command -v shasum >/dev/null; then
        sums='shasum -a 256'
    else
        die 'neither sha256sum nor shasum is on the PATH, so the files cannot be checked'
    fi
    # shellcheck disable=SC2086 # a command and its flags
    wrong=$(cd "$root" && $sums -c SHA256SUMS 2>/dev/null | grep -v ': OK$') || :
    [ -z "$wrong" ] || die "the archive is damaged: $wrong" 'download and unpack it again'
    # The sums say nothing about what is missing from them.
    (cd "$root" && $sums -c SHA256SUMS >/dev/null 2>&1) || die 'the archive is damaged' 'download and unpack it again'
}

# put MODE SOURCE PATH: readies a file for the prefix.
put() {
    if [ -n "$dry_run" ]; then
        echo "would install $prefix/$3"
        return
    fi
    mkdir -p "$stage/new/$(dirname "$3")"
    cp "$2" "$stage/new/$3"
    chmod "$1" "$stage/new/$3"
    printf '%s\n' "$3" >>"$stage/list"
}

# put_link NAME PATH: readies a link to the file NAME beside it.
put_link() {
    if [ -n "$dry_run" ]; then
        echo "would install $prefix/$2"
        return
    fi
    ln -s "$1" "$stage/new/$2"
    printf '%s\n' "$2" >>"$stage/list"
}

put_all() {
    put 755 "$commands/git-evt-push" bin/git-evt-push
    for plugin in $plugins; do
        # kubectl runs kubectl-argo_webhook for `kubectl argo-webhook`, kubectl-argo-webhook for `kubectl argo webhook`.
        put 755 "$commands/kubectl-argo-$plugin" "bin/kubectl-argo-$plugin"
        put_link "kubectl-argo-$plugin" "bin/kubectl-argo_$plugin"
        put 755 "$root/completions/kubectl_complete" "bin/kubectl_complete-argo-$plugin"
        put_link "kubectl_complete-argo-$plugin" "bin/kubectl_complete-argo_$plugin"
    done
    put 644 "$root/completions/git-evt-push.bash" share/bash-completion/completions/git-evt-push
    put 644 "$root/completions/_git-evt-push" share/zsh/site-functions/_git-evt-push
    put 644 "$root/completions/git-evt-push.fish" share/fish/vendor_conf.d/git-evt-push.fish
    put 644 "$root/LICENSE" share/argo-evt/LICENSE
    files=$(cd "$root" && find share -type f | sort)
    while IFS= read -r path; do
        mode=644
        [ ! -x "$root/$path" ] || mode=755
        put "$mode" "$root/$path" "$path"
    done <<FILES
$files
FILES
}

# A command that does not run here is not put in the place of one that does.
try() {
    for command in git-evt-push kubectl-argo-resync kubectl-argo-waitrev kubectl-argo-webhook; do
        "$stage/new/bin/$command" --version >/dev/null || die "$command does not run on this machine"
    done
}

# Makes a folder under the prefix, and notes each one that was not there.
make_folder() {
    folder=$1
    while [ ! -d "$prefix/$folder" ]; do
        folders="$folder/
$folders"
        folder=$(dirname "$folder")
    done
    mkdir -p "$prefix/$1"
}

# Moves every file into its place; each is whole at every moment.
move_all() {
    moving=yes
    : >"$stage/moved"
    while IFS= read -r path; do
        if [ -e "$prefix/$path" ] || [ -L "$prefix/$path" ]; then
            mkdir -p "$stage/old/$(dirname "$path")"
            cp -pP "$prefix/$path" "$stage/old/$path"
        fi
        printf '%s\n' "$path" >>"$stage/moved"
        mv -f "$stage/new/$path" "$prefix/$path"
    done <"$stage/list"
    moving=
}

put_back() {
    while IFS= read -r path; do
        if [ -e "$stage/old/$path" ] || [ -L "$stage/old/$path" ]; then
            mv -f "$stage/old/$path" "$prefix/$path"
        else
            rm -f "$prefix/$path"
        fi
    done <"$stage/moved"
}

# Makes the folder that everything is readied in, beside where it goes.
make_stage() {
    if [ ! -d "$prefix" ]; then
        mkdir -p "$prefix" 2>/dev/null || die "cannot make $prefix" 'choose another with --prefix, or run as root'
        folders='./
'
    fi
    for old in "$prefix"/.argo-evt.*; do
        # One that was killed could not clean up.
        [ ! -d "$old" ] || kill -0 "${old##*.}" 2>/dev/null || rm -rf "$old"
    done
    mkdir "$stage" 2>/dev/null || die "cannot write to $prefix" 'choose another with --prefix, or run as root'
    mkdir -p "$stage/new/bin" "$stage/new/share/argo-evt"
}

install() {
    find_commands
    [ -n "$dry_run" ] || make_stage
    put_all
    if [ -n "$dry_run" ]; then
        echo "would install $prefix/$manifest"
        return
    fi
    try
    echo "$manifest" >>"$stage/list"
    while IFS= read -r path; do
        [ ! -d "$prefix/$path" ] || [ -L "$prefix/$path" ] || die "$prefix/$path is a folder" 'move it away'
        make_folder "$(dirname "$path")"
    done <"$stage/list"
    installed >"$stage/before"
    { cat "$stage/list" && printf '%s' "$folders" && sed -n '/\/$/p' "$stage/before"; } >"$stage/new/$manifest"
    move_all
    folders=
    # What an older release brought and this one does not.
    sed '/\/$/d' "$stage/before" | { grep -vxF -f "$stage/list" || :; } | while IFS= read -r path; do
        rm -f "$prefix/$path"
    done
    echo "installed argo-evt under $prefix"
}

advise() {
    case :$PATH: in
    *":$prefix/bin:"*)
        for plugin in $plugins; do
            for name in "kubectl-argo-$plugin" "kubectl-argo_$plugin"; do
                found=$(command -v "$name") || continue
                [ "$found" = "$prefix/bin/$name" ] ||
                    echo "warning: $found comes before $prefix/bin on the PATH; kubectl runs that one" >&2
            done
        done
        ;;
    *)
        echo "$prefix/bin is not on the PATH. Add it in the file that your shell reads at its start:"
        echo "    export PATH=\"$prefix/bin:\$PATH\""
        ;;
    esac
    case ${SHELL-} in
    */zsh) echo "zsh completes \`git evt-push\` after: fpath=($prefix/share/zsh/site-functions \$fpath)" ;;
    esac
}

if [ -n "$uninstall" ]; then
    remove
else
    install
    [ -n "$dry_run" ] || advise
fi
