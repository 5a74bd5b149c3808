#!/usr/bin/env bash
# Puts what run_all.py needs into one folder: build.sh BUILD FOLDER, with a release build of the targets
# cistern, cistern_preload and cistern_static. Needs nvcc; ARCH is the GPU's (90 where it is not set).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../../../.." && pwd)
build=$1 to=$2
mkdir -p "$to"
cp "$here"/*.py "$build/interop/command/cistern" "$build/interop/preload/libcistern_preload.so" "$to"
for source in held_malloc held_pages; do
  nvcc -std=c++17 -O2 -arch="sm_${ARCH:-90}" -cudart static -I "$top/include" "$here/$source.cu" -o "$to/$source" \
    "$build/libcistern.a" -lpthread -ldl
done
