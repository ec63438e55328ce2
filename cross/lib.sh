# shellcheck shell=bash
# What scripts/build, build-all, image, package, release and test share. They read it with `.`, from the root of the
# repository, and call themselves $me in messages.

# What the binaries are called that a script is about, and its option for that: --admin, --provider.
name=edge-syncer option=''

say() { echo "$me: $*" >&2; }

# The head of a script is its help.
help() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p;}' "scripts/$me"; }

# meanwhile WHAT COMMAND ...: runs a command, and every half minute says what the function WHAT prints, until it ends. The
# ticker waits at a pipe, which ends with this shell, however that ends; the command does not get it.
meanwhile() {
  local what=$1 result=0
  shift
  exec 7> >(while read -rt "${TICK:-30}" _; [ $? -gt 128 ]; do say "$($what)"; done)
  "$@" 7>&- || result=$?
  exec 7>&-
  return $result
}

version() { sed -n '/^version = /{s/.*"\(.*\)"/\1/p;q;}' Cargo.toml; }

# What is built, for `edge-syncer version` and the labels of images. Empty where there is no Git.
commit() { git describe --always --abbrev=12 --exclude='*' --dirty 2>/dev/null || true; }
commit_time() { git show -s --format=%ct HEAD 2>/dev/null || echo 0; }
export_identity() {
  EDGE_SYNCER_COMMIT=$(commit) EDGE_SYNCER_DATE=$(TZ=UTC0 date -d "@$(commit_time)" +%F)
  export EDGE_SYNCER_COMMIT EDGE_SYNCER_DATE
}

# all_archs: the first column of the table of targets.
all_archs() { awk '!/^#/ && NF { print $1 }' cross/targets; }

# look_up ARCH: sets target, tools, machine, qemu, deb, rpm and platform to what the table says of it.
look_up() {
  local line
  line=$(awk -v arch="$1" '$1 == arch' cross/targets)
  [ -n "$line" ] || return 1
  # shellcheck disable=SC2034 # for the caller
  read -r _ target tools machine qemu deb rpm platform <<<"$line"
}

# require COMMAND PACKAGE: says which package has a command that is not there, and remembers that one is missing.
missing=''
require() {
  command -v "$1" >/dev/null && return
  say "$1 is missing, on Debian and Ubuntu: apt install $2"
  missing="$missing $2"
}
require_file() {
  [ -e "$1" ] && return
  say "$1 is missing, on Debian and Ubuntu: apt install $2"
  missing="$missing $2"
}

# runner ARCH: the command that runs a program of it here: nothing on a machine of the same kind.
runner() {
  look_up "$1"
  [ "$qemu" = "$(uname -m)" ] || echo "qemu-$qemu-static"
}

# The flags of the linker that make a static binary smaller, tried one after the other with `try FLAGS`: whether a
# program that is linked with these flags, given as -C link-arg=... for rustc, runs. Not every linker has them.
#
# - Relative relocations are packed, which saves 200 kB; glibc applies them in static binaries from 2.36 on.
# - Leaving out the unwind tables saves 640 kB.
# - Functions of the same code are kept once, which saves 60 kB. Nothing here counts on the addresses of functions.
# - Rust asks for the bounds of a thread's stack, to say so when that overflows, and glibc reads them with scanf and all
#   that this needs. Answered by a function that always fails, that saves 95 kB: an overflow ends with the signal alone.
#
# The path of the linker's script is relative: rustc links in the root of the repository, and a path that differs
# between two clones would make two binaries of one commit differ.
smaller_links() {
  local flags='' more
  for more in '-Wl,-z,pack-relative-relocs' \
    '-Wl,-T,cross/no-unwind-tables.ld -Wl,--no-eh-frame-hdr' \
    '-Wl,--icf=all' \
    '-Wl,-u,revoke -Wl,--defsym=pthread_getattr_np=revoke'; do
    # shellcheck disable=SC2086 # flags are words
    more=$(printf ' -C link-arg=%s' $more)
    if try "$flags$more"; then flags+=$more; else say "the linker cannot do$more; the binary is larger for it"; fi
  done
  echo "$flags"
}

# The number at this place in the head of an ELF file, in the file's own byte order: elf FILE OFFSET, two bytes.
elf() {
  local order
  order=$(od -An -tu1 -j5 -N1 "$1" | tr -d ' ')
  od -An -tu1 -j"$2" -N2 "$1" | awk -v little="$order" '{ print little == 1 ? $1 + 256 * $2 : 256 * $1 + $2 }'
}
is_elf() { [ "$(od -An -tx1 -N4 "$1" 2>/dev/null | tr -d ' ')" = 7f454c46 ]; }
machine_of() { elf "$1" 18; }

# why_not_static FILE: says nothing of a static binary. Such a one asks for no loader (INTERP) and no library (NEEDED).
why_not_static() {
  if command -v readelf >/dev/null; then
    LC_ALL=C readelf --program-headers --dynamic --wide "$1" | grep -E '\(NEEDED\)|^ *INTERP' || true
  elif command -v ldd >/dev/null; then
    LC_ALL=C ldd "$1" 2>&1 | grep -vE 'statically linked|not a (valid )?dynamic' || true
  else
    say "neither readelf nor ldd is here, so that it is static was not checked"
  fi
}

# megabytes FILE: its size, such as 4.7 MB.
megabytes() {
  local tenths=$((($(wc -c <"$1") + 50000) / 100000))
  echo "$((tenths / 10)).$((tenths % 10)) MB"
}

# Where builds of other programs are kept.
cache=${EDGE_SYNCER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/edge-syncer}

# go_tool NAME: sets $package, $version and $flags to what cross/tools says of it, and $tool to where it is kept. The name
# carries the flags too, so that a program made with others is made again.
go_tool() {
  read -r _ package version flags <<<"$(awk -v name="$1" '$1 == name' cross/tools)"
  tool=$cache/tools/$1-$version${flags:+-$(cksum <<<"$flags" | cut -d' ' -f1)}/$1
}

# tool NAME: makes sure of a Go program of cross/tools and sets $tool to it. Built once, in a minute or two.
tool() {
  local package version flags part
  go_tool "$1"
  [ -x "$tool" ] && return
  if ! command -v go >/dev/null; then
    say "$1 is missing and Go is not installed. Install Go 1.26 or later: https://go.dev/dl"
    exit 3
  fi
  say "building $1 $version, once ..."
  mkdir -p "$cache/tools"
  part=$(mktemp -d "$cache/tools/.part-XXXXXX")
  if ! GOBIN=$part GOFLAGS=-mod=mod CGO_ENABLED=$((${#flags} > 0)) CGO_CFLAGS=$flags go install -trimpath -ldflags '-s -w' "$package@$version" 2>"$part/log"; then
    cat "$part/log" >&2
    rm -rf "$part"
    say "$1 $version cannot be built"
    exit 1
  fi
  rm "$part/log"
  rm -rf "${tool%/*}"
  mv "$part" "${tool%/*}"
}

# cargo_tool NAME VERSION: makes sure of a program in Rust and sets $tool to it. Built once, and not optimized: that would
# take longer than all it does.
cargo_tool() {
  local part
  tool=$cache/tools/$1-$2/bin/$1
  [ -x "$tool" ] && return
  say "building $1 $2, once ..."
  mkdir -p "$cache/tools"
  part=$(mktemp -d "$cache/tools/.part-XXXXXX")
  if ! CARGO_TARGET_DIR=$part/target cargo install --quiet --debug --locked "$1@$2" --root "$part/made" >&2; then
    rm -rf "$part"
    say "$1 $2 cannot be built"
    exit 1
  fi
  rm -rf "${tool%/bin/*}"
  mv "$part/made" "${tool%/bin/*}"
  rm -rf "$part"
}

# tool_check NAME: says so if it is neither there nor can be built.
tool_check() {
  local package version flags tool
  go_tool "$1"
  [ -x "$tool" ] || command -v go >/dev/null && return
  say "$1 is missing, and Go to build it. Install Go 1.26 or later: https://go.dev/dl"
  missing="$missing go"
}

# binary_of ARCH: sets $binary to what scripts/build-all has made, called $name; says what is wrong with it and fails if it
# is not a static program of this architecture.
binary_of() {
  local why
  look_up "$1"
  binary=$dist/$name-$version-linux-$1
  if ! [ -f "$binary" ]; then
    say "$binary is missing: make it with scripts/build-all${option:+ $option}"
    return 1
  fi
  if ! is_elf "$binary"; then
    say "$binary is no ELF file"
    return 1
  fi
  if [ "$(machine_of "$binary")" != "$machine" ]; then
    say "$binary is for machine $(machine_of "$binary"), but $1 is machine $machine (e_machine in the ELF header)"
    return 1
  fi
  why=$(why_not_static "$binary")
  if [ -n "$why" ]; then
    say "$binary is not static, and there is no library beside it: $(echo "$why" | head -1 | tr -s ' ')"
    return 1
  fi
}
