#!/usr/bin/env bash
# The headers of AMD's libraries, out of the packages of a Debian suite:
#
#   tests/hip/handles/fetch_headers.sh MIRROR SUITE FOLDER
#   cmake --preset release -DCISTERN_ROCM_HEADERS=FOLDER/usr/include
#
# MIRROR is the address of a Debian archive. SUITE: bookworm has hipSPARSE alone, trixie all but
# MIOpen, sid all. What the suite does not have is named and left out. Nothing is installed, and the
# machine's own lists are left alone: apt keeps its state in FOLDER/apt.
set -euo pipefail
if (($# != 3)); then
  sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
mirror=$1 suite=$2
mkdir -p "$3"
folder=$(realpath "$3")

# What the five are made of, and what their headers include.
PACKAGES=(
  libmiopen-dev librocblas-dev libhipblas-dev libhipblas-common-dev libhipsparse-dev libhipsolver-dev
  libamdhip64-dev
)

state=$folder/apt
mkdir -p "$state"/{lists,cache}/partial
echo "deb $mirror $suite main" >"$state/sources.list"
: >"$state/status"
options=(
  -o Dir::State="$state" -o Dir::State::lists="$state/lists" -o Dir::State::status="$state/status"
  -o Dir::Cache="$state/cache" -o Dir::Etc::SourceList="$state/sources.list"
  -o Dir::Etc::SourceParts=/dev/null -o APT::Sandbox::User=root
)
apt-get "${options[@]}" -qq update
cd "$state"
for package in "${PACKAGES[@]}"; do
  if [[ -z $(apt-cache "${options[@]}" madison "$package" 2>/dev/null) ]]; then
    echo "$suite has no $package"
    continue
  fi
  apt-get "${options[@]}" -qq download "$package"
  dpkg-deb -x "$package"_*.deb "$folder"
  printf "%s\n" "$package"_*.deb
  rm "$package"_*.deb
done
echo "headers: $folder/usr/include"
