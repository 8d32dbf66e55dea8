#!/usr/bin/env bash
# The checks of 64-bit ARM on an x86-64 machine: builds the CPU device for aarch64 with its NEON loops, runs the tests of
# ulpian-num, ulpian-kernel and ulpian-cpu under qemu, and trains both models there and here: the weights must be equal.
#
#   scripts/aarch64.sh         what is missing goes into a temporary folder, removed at the end
#   scripts/aarch64.sh DIR     as above, but into DIR, where the next run finds it
#
# A rustc with the target (`rustup target add aarch64-unknown-linux-gnu`), aarch64-linux-gnu-gcc and qemu-aarch64 are used
# where the machine has them. What it has not is fetched as Debian packages and unpacked; nothing is installed and apt's
# sources are not touched. Debian's rustc 1.95 or newer is in 12's security updates (rustc-web) or a later release.
# Everything else written lies under target/. All checks run even when one fails; the exit status says whether all passed.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/private-apt.sh"
case ${1:-} in -*) sed -n '2,12s/^# \{0,1\}//p' "$0" >&2; exit 2 ;; esac
[ $# -le 1 ] || die "one folder at most"
[ "$(uname -m)" = x86_64 ] || die "this is not an x86-64 machine; on ARM itself scripts/test.sh runs the same tests"
[ -f "${HOME:-}/.cargo/env" ] && . "$HOME/.cargo/env"
command -v cargo >/dev/null || die "no cargo: install Rust 1.95 or newer from https://rustup.rs"
command -v cc >/dev/null || die "no C compiler, which Rust links with: apt install gcc libc6-dev"

triple=aarch64-unknown-linux-gnu
if [ $# = 1 ]; then
  mkdir -p "$1"
  dir=$(cd "$1" && pwd)
else
  dir=$(mktemp -d)
  trap 'rm -rf "$dir"' EXIT
fi
root=$dir/root

has_target() { # RUSTC
  local libs
  libs=$("$1" --print target-libdir --target $triple 2>/dev/null) && ls "$libs"/libstd-*.rlib >/dev/null 2>&1
}
# The version of the packages that apt would take, 0 if it knows none.
candidate() { apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: *\([0-9].*\)$/\1/p' | sed -n 1p; }
need() { # PACKAGE MINIMUM
  local found
  found=$(candidate "$1")
  [ -n "$found" ] || die "no package $1 in $(grep -c '^deb' "$dir/apt/sources.list") package lists of $ID $VERSION_CODENAME"
  dpkg --compare-versions "$found" ge "$2" || die "package $1 is $found here, $2 or newer is needed"
}

want=()
rustc=${RUSTC:-rustc}
has_target "$rustc" || { rustc=$dir/rustc; [ -x "$rustc" ] || want+=(rustc); }
linker=$(command -v aarch64-linux-gnu-gcc) || { linker=$dir/cc; [ -x "$linker" ] || want+=(gcc-aarch64-linux-gnu libc6-arm64-cross libc6-dev-arm64-cross); }
qemu=$(command -v qemu-aarch64-static || command -v qemu-aarch64) || { qemu=$root/usr/bin/qemu-aarch64-static; [ -x "$qemu" ] || want+=(qemu-user-static); }
if [ ${#want[@]} != 0 ]; then
  ID=$(. /etc/os-release && printf '%s' "$ID")
  VERSION_CODENAME=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")
  [ "$ID" = debian ] || die "this fetches packages on Debian alone; here install with the machine's own means: \
rustup target add $triple, aarch64-linux-gnu-gcc with its C library, and qemu-aarch64"
  private_apt "$dir/apt"
  # The lists of ARM's packages, and of the security updates, are wanted as well.
  printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s-security main\n' \
    "$(first_mirror debian-security http://deb.debian.org/debian-security)" "$VERSION_CODENAME" >>"$dir/apt/sources.list"
  printf 'APT::Architectures { "amd64"; "arm64"; };\n' >>"$APT_CONFIG"
  apt-get -qq update || die "the package lists could not be fetched; is there a network?"
  if [ "${want[0]}" = rustc ]; then
    package=rustc
    [ -z "$(candidate rustc-web)" ] || package=rustc-web
    want[0]=$package
    need "$package" 1.95
    std=libstd-${package/#rustc/rust}-dev:arm64
    need "$std" "$(candidate "$package")"
  fi
  for package in "${want[@]}"; do need "$package" 0; done
  echo "fetching: ${want[*]} ${std:-}"
  fetch_and_unpack "$dir/apt" "$root" "$VERSION_CODENAME-security" "${want[@]}"
  if [ -n "${std:-}" ]; then
    # ARM's standard library alone: what it depends on is for running rustc there.
    (cd "$dir/apt/cache" && rm -f ./*.deb && apt-get -qq download "$std") || die "package $std could not be fetched"
    dpkg-deb -x "$dir"/apt/cache/libstd-rust*_arm64.deb "$root"
  fi
  rm -rf "$dir/apt"
  unset APT_CONFIG
  # The unpacked programs find their libraries in the folder, the linker its C library.
  libs=$root/usr/lib/x86_64-linux-gnu:$root/lib/x86_64-linux-gnu
  wrap() { # NAME COMMAND...
    printf '#!/bin/sh\nLD_LIBRARY_PATH=%q${LD_LIBRARY_PATH:+:"$LD_LIBRARY_PATH"} exec' "$libs" >"$1.new"
    printf ' %q' "${@:2}" >>"$1.new"
    printf ' "$@"\n' >>"$1.new"
    chmod +x "$1.new"
    mv "$1.new" "$1"
  }
  [ -z "${std:-}" ] || wrap "$dir/rustc" "$root/usr/bin/rustc"
  [ ! -x "$root/usr/bin/aarch64-linux-gnu-gcc" ] || wrap "$dir/cc" "$root/usr/bin/aarch64-linux-gnu-gcc" "--sysroot=$root"
fi
has_target "$rustc" || die "$rustc runs not, or has no standard library for $triple"
# Where the ARM programs find ld-linux-aarch64.so.1 and libc.
sysroot=
for at in "$root/usr/aarch64-linux-gnu" /usr/aarch64-linux-gnu; do
  if [ -z "$sysroot" ] && [ -e "$at/lib/ld-linux-aarch64.so.1" ]; then sysroot=$at; fi
done
[ -n "$sysroot" ] || die "no C library of ARM (package libc6-arm64-cross)"

# The proof is in the running.
printf 'int main(void) { return 0; }\n' >"$dir/probe.c"
"$linker" "$dir/probe.c" -o "$dir/probe" || die "$linker does not link"
"$qemu" -L "$sysroot" "$dir/probe" || die "$qemu does not run ARM's programs"
echo "rustc: $("$rustc" --version)"
echo "linker: $("$linker" --version | sed -n 1p)"
echo "qemu: $("$qemu" --version | sed -n 1p)"

cd "$here/.."
target=${CARGO_TARGET_DIR:-$PWD/target}
arm=(env "RUSTC=$rustc" "CARGO_TARGET_DIR=$target/arm" "CARGO_BUILD_TARGET=$triple"
  "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=$linker"
  "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=$qemu -L $sysroot")
summary=()
failed=0
check() { # NAME COMMAND...: runs it and remembers how it went
  local name=$1 start=$SECONDS status=ok
  shift
  printf '\n== %s: %s\n' "$name" "$*"
  "$@" || { status=FAILED; failed=1; }
  summary+=("$(printf '%-7s %4d s  %s' "$status" $((SECONDS - start)) "$name")")
}

# Warnings are found by their text, not with -D warnings: other flags would build everything twice.
without_warnings() { # COMMAND OF CARGO...
  local log
  log=$("${arm[@]}" cargo "$@" 2>&1) && ! grep -q '^warning: .* generated [0-9]* warning' <<<"$log" ||
    { printf '%s\n' "$log" >&2; return 1; }
}

weights() { sed -n 's/^weights \(sha256:[0-9a-f]*\).*/\1/p'; }
same_weights() { # MODEL
  local here there isa plot=$target/arm/loss.svg
  local train=(train --device cpu --model "$1" --epochs 1 --plot "$plot")
  here=$("$target/release/ulpian" "${train[@]}" | weights)
  [ -n "$here" ] || return 1
  echo "x86-64         $1 $here"
  for isa in neon scalar; do
    there=$(ULPIAN_ISA=$isa "$qemu" -L "$sysroot" "$target/arm/$triple/release/ulpian" "${train[@]}" | weights)
    printf 'aarch64 %-6s %s %s\n' "$isa" "$1" "$there"
    [ "$here" = "$there" ] || return 1
  done
}

for crate in ulpian-num ulpian-kernel ulpian-cpu; do
  # What must not compile is no matter of the machine, and the test that says so runs cargo: not here.
  tests=(--locked -p $crate --lib --tests)
  [ $crate != ulpian-kernel ] || tests=(--locked -p $crate --lib --test readings --test record)
  check "build of $crate" without_warnings test --no-run "${tests[@]}"
  check "tests of $crate" "${arm[@]}" cargo test --no-fail-fast "${tests[@]}"
done
check 'release build for aarch64' without_warnings build --release --locked -p ulpian-cli
check 'release build for x86-64' cargo build --release --locked -p ulpian-cli
check 'weights of the mlp' same_weights mlp
check 'weights of the cnn' same_weights cnn

echo
printf '%s\n' "${summary[@]}"
if [ $failed = 0 ]; then echo 'all checks passed'; else echo 'some checks FAILED'; fi
exit $failed
