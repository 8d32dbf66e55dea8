#!/usr/bin/env bash
# Every check of this repository, on a fresh Debian or Ubuntu machine that has Rust and a C compiler.
#
#   scripts/test.sh             bring what is missing (see scripts/deps.sh), then check everything
#   scripts/test.sh --system    as above, but install what is missing with apt
#
# Works as root and as any user. Everything written lies under target/. A VK_DRIVER_FILES that is set already chooses
# the Vulkan driver; otherwise the tests run on Mesa's software driver. All checks run even when one fails; the exit
# status says whether all passed.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
case ${1:-} in '' | --system) ;; *) sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2 ;; esac

[ -f "${HOME:-}/.cargo/env" ] && . "$HOME/.cargo/env"
for tool in cargo rustc; do
  command -v $tool >/dev/null || { echo "test.sh: no $tool: install Rust 1.95 or newer from https://rustup.rs" >&2; exit 1; }
done
command -v cc >/dev/null || { echo "test.sh: no C compiler, which Rust links with: apt install gcc libc6-dev" >&2; exit 1; }

scripts/deps.sh "$@" || exit 1
. target/deps/env.sh
export ULPIAN_VALIDATE=1
# Software drivers compile a shader at its first dispatch: kept between runs, this saves minutes.
export MESA_SHADER_CACHE_DIR=${MESA_SHADER_CACHE_DIR:-$PWD/target/mesa-shader-cache}
export ULPIAN_CACHE=${ULPIAN_CACHE:-$PWD/target/ulpian-cache}
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-never}

summary=()
failed=0
check() { # NAME COMMAND...: runs it and remembers how it went
  local name=$1 start=$SECONDS status=ok
  shift
  printf '\n== %s: %s\n' "$name" "$*"
  "$@" || { status=FAILED; failed=1; }
  summary+=("$(printf '%-7s %4d s  %s' "$status" $((SECONDS - start)) "$name")")
}
skip() { summary+=("$(printf '%-7s         %s' skipped "$1")"); }

check 'format' cargo fmt --all --check
check 'lints' cargo clippy --workspace --all-targets --locked -- -D warnings
# One build, every test; a failing crate does not hide the next.
check 'tests' cargo test --workspace --all-targets --locked --no-fail-fast
check 'documentation examples' cargo test --workspace --doc --locked --no-fail-fast
check 'documentation' env RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --locked --quiet
if command -v shellcheck >/dev/null; then
  check 'scripts' shellcheck -x -S warning scripts/*.sh .ci/run
else
  check 'scripts' bash -n scripts/deps.sh scripts/test.sh scripts/fetch-fashion-mnist.sh scripts/setup-peers.sh scripts/private-apt.sh .ci/run
fi
if command -v python3 >/dev/null; then
  check 'python syntax' python3 -c 'import ast, glob; [ast.parse(open(f).read(), f) for f in glob.glob("scripts/*.py")]'
else
  skip 'python syntax (no python3)'
fi
if command -v cargo-deny >/dev/null; then
  check 'dependencies' cargo deny --locked check
else
  skip 'dependencies (cargo-deny is not installed)'
fi

echo
printf '%s\n' "${summary[@]}"
if [ $failed = 0 ]; then echo 'all checks passed'; else echo 'some checks FAILED'; fi
exit $failed
