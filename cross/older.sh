#!/usr/bin/env bash
# Makes sure of an older version, for the tests of an upgrade, and prints the path of its binary. Built once, from the
# history of this repository, for this machine's architecture.
#
#   cross/older.sh            makes it
#   cross/older.sh COMMIT     makes that of another commit or tag
#
#   EDGE_SYNCER_CACHE   where it is kept (default: ${XDG_CACHE_HOME:-~/.cache}/edge-syncer)
set -euo pipefail
cd "$(dirname "$0")/.."
me=older
. cross/lib.sh

# There is no release yet. This commit is of the day before the core of the program was rewritten: what is kept at the
# edge is the same, and all of what reads and writes it is not. From the second release on, this is the first one's tag.
commit=${1:-1f636df}
if ! commit=$(git rev-parse --verify --quiet --short=12 "$commit^{commit}"); then
  say "the commit ${1:-1f636df} is not here: the whole history is needed (git fetch --unshallow)"
  exit 1
fi
binary=$cache/older-$commit/edge-syncer
if ! [ -x "$binary" ]; then
  require cargo rustup
  require git git
  [ -z "$missing" ] || exit 3
  say "building the version of commit $commit, once ..."
  mkdir -p "$cache"
  work=$(mktemp -d "$cache/.part-XXXXXX")
  trap 'rm -rf "$work"' EXIT
  git clone --quiet --no-checkout . "$work/clone"
  git -C "$work/clone" checkout --quiet "$commit"
  # Not as small as it can be, which would take minutes: what it does is what counts.
  (cd "$work/clone" && unset RUSTFLAGS && EDGE_SYNCER_COMMIT=$commit CARGO_TARGET_DIR=$work/target \
    cargo build --quiet --locked --bin edge-syncer >&2)
  mkdir "$work/made"
  mv "$work/target/debug/edge-syncer" "$work/made/"
  rm -rf "$cache/older-$commit"
  mv "$work/made" "$cache/older-$commit"
fi
echo "$binary"
