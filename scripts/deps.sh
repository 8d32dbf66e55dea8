#!/usr/bin/env bash
# Brings what the tests need beyond Rust: a software Vulkan driver (Mesa's lavapipe, 24 or newer) with a loader, the
# Khronos validation layer, and spirv-tools. What the machine has and is new enough is used; the rest is fetched as
# Debian or Ubuntu packages and unpacked into target/deps. Nothing is installed and apt's sources are not touched.
#
#   scripts/deps.sh            prepare, and write target/deps/env.sh
#   scripts/deps.sh --fetch    as above, but take nothing of the machine's Vulkan: fetch it all
#   scripts/deps.sh --system   install the packages with apt instead (root or sudo; on Debian 12 adds the backports source)
#
# Then `. target/deps/env.sh` makes a shell see them. A VK_DRIVER_FILES that is set already is left as it is.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/private-apt.sh"
mode=${1:-}
case $mode in '' | --fetch | --system) ;; *) sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2 ;; esac
[ $# -le 1 ] || die "one option at most"

deps=$(cd "$here/.." && pwd)/target/deps
root=$deps/root
mkdir -p "$deps"
MESA_MIN=24
VULKAN_PACKAGES="mesa-vulkan-drivers libvulkan1 vulkan-validationlayers"
TOOL_PACKAGES="spirv-tools vulkan-tools"

version_of() { dpkg-query -W -f '${Version}' "$1" 2>/dev/null || true; }
major() { local v=${1#*:}; printf '%s' "${v%%[!0-9]*}"; }
system_icd() { ls /usr/share/vulkan/icd.d/lvp_icd*.json /etc/vulkan/icd.d/lvp_icd*.json 2>/dev/null | sed -n 1p || true; }
system_layer() { ls /usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json /etc/vulkan/explicit_layer.d/VkLayer_khronos_validation.json 2>/dev/null | sed -n 1p || true; }
mesa_major() {
  if command -v dpkg-query >/dev/null; then
    major "$(version_of mesa-vulkan-drivers)"
  elif command -v vulkaninfo >/dev/null && [ -n "$(system_icd)" ]; then
    VK_DRIVER_FILES=$(system_icd) vulkaninfo --summary 2>/dev/null | sed -n 's/.*driverInfo *= Mesa \([0-9]*\).*/\1/p' | sed -n 1p
  fi
}
vulkan_is_here() {
  local mesa
  [ "$mode" != --fetch ] || return 1
  mesa=$(mesa_major)
  # No grep -q: it leaves the pipe early, and under pipefail the writer's broken pipe would at times count as "not here".
  [ "${mesa:-0}" -ge $MESA_MIN ] && [ -n "$(system_icd)" ] && [ -n "$(system_layer)" ] &&
    { ldconfig -p 2>/dev/null || /sbin/ldconfig -p 2>/dev/null; } | grep 'libvulkan\.so\.1' >/dev/null
}
tools_are_here() { [ "$mode" != --fetch ] && command -v spirv-val spirv-dis spirv-as vulkaninfo >/dev/null; }

if [ "$mode" = --system ]; then
  sudo=
  [ "$(id -u)" = 0 ] || sudo=sudo
  release=()
  if (. /etc/os-release && [ "$ID/${VERSION_CODENAME:-}" = debian/bookworm ]); then
    release=(-t bookworm-backports)
    if ! apt-cache policy 2>/dev/null | grep bookworm-backports >/dev/null; then
      printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s bookworm-backports main\n' \
        "$(first_mirror debian http://deb.debian.org/debian)" | $sudo tee /etc/apt/sources.list.d/ulpian-backports.list >/dev/null
    fi
  fi
  $sudo apt-get -q update
  # shellcheck disable=SC2086 # lists of names
  $sudo apt-get -y -q --no-install-recommends "${release[@]}" install $VULKAN_PACKAGES $TOOL_PACKAGES
  mode=
fi

want=
vulkan=here
vulkan_is_here || { vulkan=fetched; want=$VULKAN_PACKAGES; }
tools_are_here || want="$want $TOOL_PACKAGES"
if [ -n "$want" ]; then
  stamp="$(. /etc/os-release && printf '%s' "$ID $VERSION_CODENAME") $mode $want"
  if [ "$(cat "$deps/stamp" 2>/dev/null)" != "$stamp" ]; then
    echo "fetching:$(printf ' %s' $want)"
    rm -rf "$root" "$deps/stamp"
    private_apt "$deps/apt"
    # shellcheck disable=SC2086
    fetch_and_unpack "$deps/apt" "$root" "$APT_RELEASE" $want
    # The packages are unpacked: the packed ones and the lists are of no more use.
    rm -rf "$deps/apt"
    printf '%s' "$stamp" >"$deps/stamp"
  fi
fi

# Where the unpacked libraries are: usr/lib/x86_64-linux-gnu and its like, and the same under lib, where Debian 12 keeps a few.
libs=$(ls -d "$root"/usr/lib/*-linux-gnu* 2>/dev/null | sed -n 1p || true)
more=$(ls -d "$root"/lib/*-linux-gnu* 2>/dev/null | sed -n 1p || true)
absolute() { # FROM TO: a manifest whose library is named by its whole path
  local lib
  lib=$(sed -n 's/.*"library_path" *: *"\([^"]*\)".*/\1/p' "$1")
  [ -f "$libs/${lib##*/}" ] || die "$1 names $lib, which was not unpacked"
  sed "s|\"library_path\" *: *\"[^\"]*\"|\"library_path\": \"$libs/${lib##*/}\"|" "$1" >"$2"
}
{
  printf '# Written by scripts/deps.sh.\n'
  [ -z "$want" ] || printf 'export PATH=%q:"$PATH"\nexport LD_LIBRARY_PATH=%q${LD_LIBRARY_PATH:+:"$LD_LIBRARY_PATH"}\n' "$root/usr/bin" "$libs${more:+:$more}"
  if [ $vulkan = here ]; then
    icd=$(system_icd)
    layers=$(dirname "$(system_layer)")
  else
    mkdir -p "$deps/vulkan/layers"
    icd=$deps/vulkan/lvp_icd.json
    layers=$deps/vulkan/layers
    absolute "$(ls "$root"/usr/share/vulkan/icd.d/lvp_icd*.json | sed -n 1p)" "$icd"
    absolute "$root/usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json" "$layers/VkLayer_khronos_validation.json"
  fi
  # VK_ICD_FILENAMES is what loaders before 1.3.207 read.
  printf 'if [ -z "${VK_DRIVER_FILES:-}" ]; then export VK_DRIVER_FILES=%q VK_ICD_FILENAMES=%q; fi\n' "$icd" "$icd"
  printf 'export VK_LAYER_PATH=%q\n' "$layers"
} >"$deps/env.sh.new"
mv "$deps/env.sh.new" "$deps/env.sh"

# The proof is in the running: a software device through this loader, driver and layer.
. "$deps/env.sh"
found=$(vulkaninfo --summary 2>/dev/null | sed -n 's/.*driverInfo *= *//p' | sed -n 1p || true)
[ -n "$found" ] || { vulkaninfo --summary >&2 || true; die "the Vulkan driver $VK_DRIVER_FILES does not run"; }
newest=$(printf '%s' "$found" | sed -n 's/^Mesa \([0-9]*\).*/\1/p')
if [ -n "$newest" ] && [ "$newest" -lt $MESA_MIN ]; then
  die "this release offers Mesa $newest, the tests need $MESA_MIN: use Debian 12 or newer or Ubuntu 24.04 or newer, or set VK_DRIVER_FILES"
fi
echo "Vulkan: $found ($VK_DRIVER_FILES)"
echo "spirv-val: $(spirv-val --version | sed -n 1p) ($(command -v spirv-val))"
