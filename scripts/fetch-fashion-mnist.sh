#!/usr/bin/env bash
# Fetches Fashion-MNIST (70,000 images, MIT licence, Zalando) into a folder: the four IDX.gz files of Debian's package
# dataset-fashion-mnist, which is verified by apt, unpacked and not installed.
#
#   scripts/fetch-fashion-mnist.sh DIR
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/private-apt.sh"
[ $# = 1 ] && [ "${1#-}" = "$1" ] || { sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2; }
mkdir -p "$1"
dir=$(cd "$1" && pwd)

# sha256 of the unpacked files: packages of different releases may be packed differently.
sums='5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b  t10k-images-idx3-ubyte
0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34  t10k-labels-idx1-ubyte
c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888  train-images-idx3-ubyte
bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9  train-labels-idx1-ubyte'
check() {
  local sum name
  while read -r sum name; do
    [ "$(gzip -dc "$1/$name.gz" | sha256sum | cut -d' ' -f1)" = "$sum" ] || { echo "$1/$name.gz is absent or damaged" >&2; return 1; }
  done <<<"$sums"
}

if check "$dir" 2>/dev/null; then echo "Fashion-MNIST is already in $dir"; exit 0; fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
private_apt "$work/apt"
(cd "$work" && apt-get -q download dataset-fashion-mnist >apt.log 2>&1) || { cat "$work/apt.log" >&2; die "the package could not be fetched"; }
dpkg-deb -x "$work"/dataset-fashion-mnist_*.deb "$work/root"
from=$work/root/usr/share/datasets/fashion-mnist
check "$from" || die "the package does not hold the files that were expected"
while read -r _ name; do
  # Copied beside its place and renamed, so that an interrupted run leaves no half file.
  cp "$from/$name.gz" "$dir/.$name.tmp"
  mv "$dir/.$name.tmp" "$dir/$name.gz"
done <<<"$sums"
check "$dir"
echo "Fashion-MNIST is in $dir: four files, sums verified"
