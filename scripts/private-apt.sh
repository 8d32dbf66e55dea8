# Sourced, not run: apt with package lists and a cache of its own, so that Debian and Ubuntu packages can be fetched and
# unpacked into a folder by any user. Nothing is installed, and apt's own sources, lists and cache are only read.

die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

# The mirror the machine already uses, so that proxies and local mirrors are respected. Every line is read: a reader that
# leaves early breaks the writer's pipe, which counts as a failure under pipefail.
first_mirror() {
  local mirror
  mirror=$(cat /etc/apt/sources.list.d/*.sources 2>/dev/null |
    awk -v d="/$1/?\$" 'tolower($1) == "uris:" { for (i = 2; i <= NF; i++) if ($i ~ d && !n++) print $i }')
  [ -n "$mirror" ] || mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null |
    awk -v d="/$1/?\$" '$1 == "deb" { for (i = 2; i <= NF; i++) if ($i ~ d && !n++) print $i }')
  printf '%s' "${mirror:-$2}"
}

# private_apt DIR: writes DIR/apt.conf with its sources, fetches the lists (again when a day old), exports APT_CONFIG,
# and sets APT_RELEASE to the release that new packages should be taken from.
private_apt() {
  local dir=$1 id codename keyring main
  command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null ||
    die "apt-get and dpkg-deb are not here: this works on Debian and Ubuntu; elsewhere install the packages by hand"
  id=$(. /etc/os-release && printf '%s' "$ID")
  codename=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")
  [ -n "$codename" ] || die "/etc/os-release names no release (VERSION_CODENAME)"
  mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial" "$dir/parts"
  dir=$(cd "$dir" && pwd)
  APT_RELEASE=$codename
  case $id in
    debian)
      keyring=/usr/share/keyrings/debian-archive-keyring.gpg
      main=$(first_mirror debian http://deb.debian.org/debian)
      # Bookworm's own Mesa (22.3) is too old; its backports have 25.
      { printf 'deb [signed-by=%s] %s %s main\n' "$keyring" "$main" "$codename"
        # Releases that are not out yet have no number and no updates.
        if (. /etc/os-release && [ -n "${VERSION_ID:-}" ]); then
          printf 'deb [signed-by=%s] %s %s-updates main\n' "$keyring" "$main" "$codename"
        fi
        if [ "$codename" = bookworm ]; then
          printf 'deb [signed-by=%s] %s bookworm-backports main\n' "$keyring" "$main"
        fi
      } >"$dir/sources.list.new"
      if [ "$codename" = bookworm ]; then APT_RELEASE=bookworm-backports; fi ;;
    ubuntu)
      keyring=/usr/share/keyrings/ubuntu-archive-keyring.gpg
      if [ "$(dpkg --print-architecture)" = amd64 ]; then
        main=$(first_mirror ubuntu http://archive.ubuntu.com/ubuntu)
      else
        main=$(first_mirror ubuntu-ports http://ports.ubuntu.com/ubuntu-ports)
      fi
      printf "deb [signed-by=$keyring] %s %s main universe\n" \
        "$main" "$codename" "$main" "$codename-updates" "$main" "$codename-security" >"$dir/sources.list.new"
      APT_RELEASE=$codename-updates ;;
    *) die "this knows Debian and Ubuntu, not $id; install the packages by hand" ;;
  esac
  [ -r "$keyring" ] || die "$keyring is not there: the packages could not be verified"
  # The machine's own list of installed packages, so that only what is missing is fetched. PRIVATE_APT_STATUS replaces
  # it, to try the whole closure on a machine that has everything.
  cat >"$dir/apt.conf" <<CONF
Dir::Etc::SourceList "$dir/sources.list";
Dir::Etc::SourceParts "$dir/parts";
Dir::State::Lists "$dir/lists";
Dir::State::Status "${PRIVATE_APT_STATUS:-/var/lib/dpkg/status}";
Dir::Cache "$dir/cache";
APT::Sandbox::User "$(id -un)";
Acquire::Languages "none";
Acquire::Retries "3";
Debug::NoLocking "true";
CONF
  export APT_CONFIG=$dir/apt.conf
  if ! cmp -s "$dir/sources.list.new" "$dir/sources.list" || [ -z "$(find "$dir/fetched" -mtime -1 2>/dev/null)" ]; then
    mv "$dir/sources.list.new" "$dir/sources.list"
    rm -f "$dir/fetched"
    apt-get -qq update || die "the package lists could not be fetched; is there a network?"
    : >"$dir/fetched"
  fi
}

# fetch_and_unpack APTDIR ROOT RELEASE PACKAGE...: the packages and what they need beyond what is installed, into ROOT.
fetch_and_unpack() {
  local apt=$1 root=$2 release=$3 deb
  shift 3
  # The archives folder may hold debs of an earlier answer: only this one's are wanted.
  rm -f "$apt"/cache/archives/*.deb
  apt-get -y -q --no-install-recommends --download-only --reinstall -t "$release" install "$@" >"$apt/log" 2>&1 ||
    { cat "$apt/log" >&2; die "the packages could not be fetched: $*"; }
  mkdir -p "$root"
  for deb in "$apt"/cache/archives/*.deb; do
    dpkg-deb -x "$deb" "$root" || die "$deb could not be unpacked"
  done
}
