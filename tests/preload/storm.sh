#!/usr/bin/env bash
# storm.sh SECONDS PROCESSES [FIRST_SEED]: so many storms (programs/storm_program.cpp) at once, under `cistern run`,
# each with a seed of its own, by which it is on CUDA or HIP and has options. Says at its end what each with a fault has
# said, and in one line which seeds there were, how many steps and how many faults. It lies beside what it needs
# (cistern, libcistern_preload.so, the folders driver, hip and programs), or STORM_FOLDER says where that is.
set -uo pipefail
seconds=${1:?storm.sh SECONDS PROCESSES [FIRST_SEED]} processes=${2:?how many processes} first=${3:-1}
here=${STORM_FOLDER:-$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
export TMPDIR=$out CISTERN_PRELOAD=$here/libcistern_preload.so
export LD_LIBRARY_PATH=$here/driver:$here/hip:$here/lib
unset CISTERN_CONF LD_PRELOAD

storm() {
  local seed=$1 program=storm_program options=() environment=()
  ((seed % 3 != 0)) || program=hip_storm
  [[ -x $here/programs/$program ]] || program=storm_program
  ((seed % 4 < 2)) || options+=(--strict)
  ((seed % 5 != 0)) || options+=(--conf backing:segments)
  [[ $program == hip_storm || $((seed % 2)) -ne 0 || $((seed % 5)) -eq 0 ]] || {
    options+=(--overflow 2GiB)
    environment+=(STORM_OVERFLOW=1)
  }
  [[ $program != hip_storm && $((seed % 5)) -ne 0 ]] || environment+=(STORM_EVEN_SIZES=1)
  env ${environment[@]+"${environment[@]}"} timeout $((seconds + 300)) "$here/cistern" run --quiet ${options[@]+"${options[@]}"} -- \
    "$here/programs/$program" "$seconds" "$seed" >"$out/$seed" 2>&1
  local status=$?
  ((status == 0)) || echo "seed $seed ($program ${options[*]-}): exit status $status" >>"$out/$seed.fault"
}

for ((seed = first; seed < first + processes; ++seed)); do storm "$seed" & done
wait
steps=0 faults=0
for ((seed = first; seed < first + processes; ++seed)); do
  done_here=$(sed -nE 's/.* ([0-9]+) steps.*/\1/p' "$out/$seed" | tail -1)
  steps=$((steps + ${done_here:-0}))
  [[ -e $out/$seed.fault ]] || continue
  faults=$((faults + 1))
  cat "$out/$seed.fault"
  tail -20 "$out/$seed"
done
echo "seeds $first to $((first + processes - 1)), $seconds s each: $steps steps, $faults faults"
((faults == 0))
