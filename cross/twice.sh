#!/usr/bin/env bash
# Builds the last commit again in a clone whose folder has another length, as another user would have it: other home,
# time zone, file times and mask. The binaries must be those of dist/, byte by byte.
#
#   cross/twice.sh            all architectures
#   cross/twice.sh ARCH ...   only these
set -euo pipefail
cd "$(dirname "$0")/.."
me=twice
. cross/lib.sh
dist=$(realpath "${EDGE_SYNCER_DIST:-dist}")
version=$(version)
archs=("$@")
[ ${#archs[@]} -gt 0 ] || mapfile -t archs < <(all_archs)
case $(commit) in *-dirty)
  say "files are changed since the last commit, which is what would be built"
  exit 1
  ;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
clone=$work/a/much/longer/path/than/the/first/one
git clone --quiet . "$clone"
# Another CARGO_HOME at another path, with the same downloads.
mkdir -p "$work/home"
cp -r "${CARGO_HOME:-$HOME/.cargo}/registry" "$work/home/registry"
umask 077
(cd "$clone" && find . -name '*.rs' -exec touch -d '2001-02-03' {} +)
for arch in "${archs[@]}"; do
  (cd "$clone" && TZ=Asia/Kathmandu LC_ALL=C USER=somebody LOGNAME=somebody CARGO_HOME=$work/home CARGO_TARGET_DIR=$work/t \
    EDGE_SYNCER_DIST=$work/dist scripts/build-all "$arch" >&2)
  name=edge-syncer-$version-linux-$arch
  if ! cmp "$dist/$name" "$work/dist/$name"; then
    say "$name differs between two builds"
    exit 1
  fi
  say "$name: the same bytes, SHA-256 $(sha256sum "$work/dist/$name" | cut -d' ' -f1)"
  # A gigabyte for each.
  look_up "$arch"
  rm -rf "$work/t/cross/$target"
done
