#!/usr/bin/env bash
# AMD's packages of a Debian suite, unpacked into a folder:
#
#   tests/hip/fetch_packages.sh headers MIRROR SUITE FOLDER
#   cmake --preset release -DCISTERN_ROCM_HEADERS=FOLDER/usr/include
#
#   tests/hip/fetch_packages.sh runtime MIRROR SUITE FOLDER
#   cmake --preset release -DCISTERN_LATER_HIP=FOLDER
#
# headers: of the libraries that handles are of. runtime: HIP with virtual memory and all that it needs, the C
# library too (67 MB, 300 unpacked). MIRROR is the address of a Debian archive. SUITE: bookworm has
# hipSPARSE's headers alone, trixie all but MIOpen's, sid all. sid has the runtime 6.4, experimental 7.2. What
# the suite does not have is named and left out. Nothing is installed, and the machine's own lists are left
# alone: apt keeps its state in FOLDER/apt.
set -euo pipefail
if (($# != 4)); then
  sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
what=$1 mirror=$2 suite=$3
mkdir -p "$4"
folder=$(realpath "$4")

state=$folder/apt
mkdir -p "$state"/{lists,cache}/partial "$state/cache/archives/partial"
echo "deb $mirror $suite main" >"$state/sources.list"
if [[ $suite == experimental ]]; then  # which is complete with sid
  echo "deb $mirror sid main" >>"$state/sources.list"
fi
: >"$state/status"
options=(
  -o Dir::State="$state" -o Dir::State::lists="$state/lists" -o Dir::State::status="$state/status"
  -o Dir::Cache="$state/cache" -o Dir::Etc::SourceList="$state/sources.list"
  -o Dir::Etc::SourceParts=/dev/null -o APT::Sandbox::User=root -o APT::Install-Recommends=false
)
apt-get "${options[@]}" -qq update
cd "$state/cache/archives"

case $what in
  headers)
    # What the five libraries are made of, and what their headers include.
    for package in libmiopen-dev librocblas-dev libhipblas-dev libhipblas-common-dev libhipsparse-dev \
      libhipsolver-dev libamdhip64-dev; do
      if [[ -z $(apt-cache "${options[@]}" madison "$package" 2>/dev/null) ]]; then
        echo "$suite has no $package"
        continue
      fi
      apt-get "${options[@]}" -qq download "$package"
    done
    ;;
  runtime)
    name=$(apt-cache "${options[@]}" pkgnames libamdhip64- | grep -E '^libamdhip64-[0-9]+$' | sort -V | tail -1)
    # From HIP 7 on the compiler is a library of its own.
    mapfile -t compiler < <(apt-cache "${options[@]}" pkgnames libhiprtc | grep -E "^libhiprtc(-builtins)?[0-9]+\$" | grep "${name##*-}\$")
    apt-get "${options[@]}" -qq --download-only -y -t "$suite" install "$name" "${compiler[@]}"
    apt-get "${options[@]}" -qq -t "$suite" download libamdhip64-dev
    ;;
  *)
    echo "$what: headers or runtime" >&2
    exit 2
    ;;
esac
for package in *.deb; do
  dpkg-deb -x "$package" "$folder"
  printf '%s\n' "$package"
  rm "$package"
done
echo "unpacked: $folder/usr"
