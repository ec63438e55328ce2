#!/usr/bin/env bash
# Builds the binaries of dist/ again, from the commit that they are of, in a clone whose folder has another length,
# as another user would have it: other home, time zone, file times and mask. They must be the same, byte by byte.
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
# commit_of ARCH: the commit that the binary in dist/ says it is of.
commit_of() { $(runner "$1") "$dist/edge-syncer-$version-linux-$1" version | sed -n 's/^commit: //p'; }
commit=$(commit_of "${archs[0]}")
if ! git rev-parse --verify --quiet "$commit^{commit}" >/dev/null; then
  say "the binaries in $dist are of ${commit:-no commit}; make them with scripts/build-all when nothing is changed"
  exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
clone=$work/a/much/longer/path/than/the/first/one
git clone --quiet --no-checkout . "$clone"
git -C "$clone" checkout --quiet "$commit"
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
