#!/usr/bin/env bash
# Says what the size of the binary of an architecture consists of: its sections, and its code by crate. It is what
# `scripts/footprint size` runs. Prints Markdown.
#
#   cross/size.sh                 of amd64
#   cross/size.sh ARCH            of another architecture
#   cross/size.sh --settings      instead what each setting saves, by builds without it: about three minutes each
#   cross/size.sh --settings NAME ...   only these settings
#
# Code is counted where the compiler has put it: a function that is inlined belongs to the crate that calls it, and one
# that a crate makes of a type of another belongs to the crate that defines the function. Functions of the same code,
# which the linker keeps once, count for one of them.
set -euo pipefail
cd "$(dirname "$0")/.."
me=size
. cross/lib.sh

# What a build without a setting differs by, as environment variables of Cargo: name, variable and value, what is left out.
settings() {
  cat <<'END'
opt-level CARGO_PROFILE_RELEASE_OPT_LEVEL=3 optimized for size, not for speed (opt-level = "z")
opt-level-s CARGO_PROFILE_RELEASE_OPT_LEVEL=s no loops unrolled or vectorized ("z" and not "s")
lto CARGO_PROFILE_RELEASE_LTO=off all crates optimized as one (lto = "fat")
thin-lto CARGO_PROFILE_RELEASE_LTO=thin the same, and not by parts (lto = "thin")
panic CARGO_PROFILE_RELEASE_PANIC=unwind a panic ends the program at once (panic = "abort")
END
}

version=$(version)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ "${1:-}" = --settings ]; then
  shift
  wanted=" $* "
  # Not held to the limit of a release, since some of these are over it.
  bytes() {
    env "$@" EDGE_SYNCER_DIST="$work" scripts/build-all --symbols amd64 >/dev/null </dev/null
    strip -s "$work"/edge-syncer-symbols-* -o "$work/stripped"
    wc -c <"$work/stripped"
  }
  whole=$(bytes)
  echo "| setting | saves, of $whole bytes |"
  echo '|---|---|'
  settings | while read -r name change what; do
    case $wanted in '  ' | *" $name "*) ;; *) continue ;; esac
    without=$(bytes "$change")
    echo "| $what | $((without - whole)) |"
  done
  exit
fi
arch=${1:-amd64}
if ! look_up "$arch"; then
  say "no target is called $arch; there are: $(all_archs | paste -sd' ')"
  exit 2
fi
EDGE_SYNCER_DIST=$work scripts/build-all --symbols "$arch" >/dev/null
binary=$work/edge-syncer-symbols-$version-linux-$arch
prefix=$tools-
[ -n "$(runner "$arch")" ] || prefix=
"${prefix}strip" -s "$binary" -o "$work/stripped"
echo "The binary for $arch has $(wc -c <"$work/stripped") bytes:"
echo
echo '| section | bytes |'
echo '|---|---|'
"${prefix}size" -A "$binary" | awk '$1 ~ /^\./ && $3 > 0 && $1 !~ /^\.(t?bss|symtab|strtab)/ { if ($2 >= 20000) print $2, $1; else rest += $2 }
  END { print rest, "all others" }' | sort -rn | awk '{ size = $1; $1 = ""; print "|" $0 " | " size " |" }'
echo
echo '| crate | bytes of code |'
echo '|---|---|'
"${prefix}nm" --print-size --radix=d --demangle "$binary" | awk '
  $3 ~ /^[tTwW]$/ && !seen[$1]++ {
    size = $2 + 0
    name = $0
    sub(/^[^ ]+ [^ ]+ [^ ]+ /, "", name)
    if (name ~ /ring_core|^ring::|^_?(x25519|gcm|aes_|sha(256|512)|ecp_|bn_|LIMBS|p256|p384|chacha|poly1305|fiat)/) crate = "ring"
    else if (name ~ /^OUTLINED_FUNCTION/) crate = "what functions have in common"
    else {
      while (name ~ /^(<|&|\(|\[|\*const |\*mut |mut |dyn )/) sub(/^(<|&|\(|\[|\*const |\*mut |mut |dyn )/, "", name)
      if (name !~ /^[a-z_0-9]+(\[[0-9a-f]+\])?::/) crate = name ~ / as |::/ ? "Rust\047s standard library" : "glibc, and what C has"
      else { crate = name; sub(/(\[[0-9a-f]+\])?::.*/, "", crate) }
      if (crate ~ /^(core|alloc|std|compiler_builtins|hashbrown|miniz_oxide|gimli|addr2line|rustc_demangle|memchr)$/) {
        if (crate !~ /^(hashbrown|miniz_oxide|memchr)$/) crate = "Rust\047s standard library"
      }
    }
    sum[crate] += size
  }
  END { for (crate in sum) if (sum[crate] >= 20000) print sum[crate], crate; else rest += sum[crate]; print rest, "all others" }
' | sort -rn | awk '{ size = $1; $1 = ""; print "|" $0 " | " size " |" }'
