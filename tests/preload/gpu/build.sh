#!/usr/bin/env bash
# Puts what run_all.py needs into one folder: build.sh BUILD FOLDER, with a release build of the targets
# cistern and cistern_preload. Needs nvcc; ARCH is the GPU's (90 where it is not set).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$1 to=$2
mkdir -p "$to/lib"
cp "$here"/*.py "$here/../../gpu/torch/two_gpus.py" "$build/interop/command/cistern" "$build/interop/preload/libcistern_preload.so" "$to"
for source in "$here"/*.cu; do
  for kind in static shared; do
    nvcc -std=c++17 -O2 -arch="sm_${ARCH:-90}" -cudart "$kind" "$source" \
      -o "$to/$(basename "$source" .cu)_$kind"
  done
done
cp -L "$(dirname "$(command -v nvcc)")"/../lib64/libcudart.so.* "$to/lib"
