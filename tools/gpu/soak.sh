#!/usr/bin/env bash
# soak.sh: the long random program of tests/sim on a GPU, seed after seed until the time is up, from an unpacked
# `make dist` tree (or a build folder): plain, under `iket profile`, and under `--overflow stream`.
#
#   soak.sh [--device sim] OUT [SECONDS]      default: 600
#
# OUT gets summary.txt: a line a seed, and a closing line: launches and records, differences, the most memory that
# `iket profile` had under the first and under the last seed, and how much of the device's was in use before and after.
# ACTIONS (default 10000, about a minute a seed) is how many actions the program of a seed has. No seed begins that
# would end behind the time, by how long the longest took. The exit code is 1 if results or counts differ; the captures
# of such a run are kept in OUT/seed-N-HOW.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
device=gpu
if [[ ${1:-} == --device ]]; then
  device=${2:?usage: soak.sh [--device sim] OUT [SECONDS]}
  shift 2
fi
out=${1:?usage: soak.sh [--device sim] OUT [SECONDS]}
limit=${2:-600}
mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 2

source "$here/tree.sh"
sim=$tree/bin/tests/sim
export IKET=$tree/bin/iket IKET_SIM=$tree/lib/iket-sim IKET_TEST_DEVICE=$device PYTHONDONTWRITEBYTECODE=1
export IKET_EXAMPLES=$tree/bin/examples IKET_COLLECTOR=$tree/lib/libiket_inject.so IKET_GUESTS=$tree/bin/tests/guest
export IKET_SIM_APP=$sim/sim_app IKET_SIM_SOAK=$sim/sim_soak IKET_SIM_GRAPHS=$sim/sim_graphs IKET_SIM_EMBED=$sim/sim_embed IKET_SIM_APP_IMAGES=$sim/images
export IKET_FOREIGN_DATA=$sim/foreign IKET_SIM_SELF_PROFILE=$sim/sim_self_profile IKET_SESSION_LIBRARY=$tree/lib/iket-session/libiket_injection.so
IKET_SIM_WINDOWS=$(printf '%s:' "$sim"/sim_windows*) && export IKET_SIM_WINDOWS=${IKET_SIM_WINDOWS%:}
export IKET_SOAK_SEEDS=1 IKET_SOAK_ACTIONS=${ACTIONS:-10000} IKET_SOAK_LOG=$out/runs.jsonl
summary=$out/summary.txt
: >"$summary"
: >"$IKET_SOAK_LOG"
differences=0

say() { echo "$*" | tee -a "$summary"; }

# In use on the whole device, in MiB; 0 where nobody can say.
device_memory() {
  local used=
  [[ $device == gpu ]] &&
    used=$(nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits 2>/dev/null | head -1)
  echo "${used:-0}"
}

# try NAME: a unittest of tests/sim; what it says goes to OUT/NAME.txt.
try() {
  (cd "$sim" && timeout -k 5 600 python3 -m unittest -v "$1") >"$out/$2.txt" 2>&1 && return
  differences=$((differences + 1))
  say "$2: FAILED, the end of $2.txt:"
  tail -n 15 "$out/$2.txt" | cut -c1-400 | tee -a "$summary"
  return 1
}

# What the runs of a seed did, from the log.
of_seed() {
  python3 - "$IKET_SOAK_LOG" "$1" <<'PYTHON'
import json
import sys

runs = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
runs = [run for run in runs if run["seed"] == int(sys.argv[2])]
print("; ".join("{overflow} {launches} launches {records} records {lost} lost {children} faults, program grew {} "
                "and {} KiB, iket {third_mb:.0f} -> {most_mb:.0f} MB".format(*run["grown_kib"], **run)
                for run in runs) or "nothing")
sys.exit(len(runs) != 2)
PYTHON
}

# Each test by its name, so that one line says which failed.
try graphs_test graphs && say "graphs: same"
# The software device has no conditional nodes, and no CUDA runtime.
if [[ $device == gpu ]]; then
  try conditional_test conditional && say "conditional nodes, launches by the device: same"
  try profiling_session_runtime_test session-runtime && say "<<<>>> that profile themselves: same"
fi
try embed_test embed && say "programs that trace themselves: same"
try profiling_session_test session && say "programs that profile themselves, IketProfilingSession: same"
try selection_test selection && say "selection: same"
try flight_test flight && say "flight: same"
try windows_test windows && say "windows: same"
began=$SECONDS longest=0 seed=0
first_memory=$(device_memory)
while ((seed == 0 || SECONDS - began + longest <= limit)); do
  seed=$((seed + 1))
  start=$SECONDS
  before=$(device_memory)
  IKET_SOAK_FIRST=$seed try soak_test "seed-$seed"
  tried=$?
  took=$((SECONDS - start + 1))
  ((took > longest)) && longest=$took
  did=$(of_seed $seed)
  # A test that passed and did nothing shows nothing.
  (($? && !tried)) && differences=$((differences + 1))
  say "seed $seed: $did; device $before -> $(device_memory) MiB; $took s"
done

python3 - "$IKET_SOAK_LOG" "$differences" "$first_memory" "$(device_memory)" <<'PYTHON' | tee -a "$summary"
import json
import sys

runs = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]


def largest(seed):
    return max((run["most_mb"] for run in runs if run["seed"] == seed), default=0)


seeds = sorted({run["seed"] for run in runs})
launches, records = (sum(run[what] for run in runs) for what in ("launches", "records"))
first, last = (largest(seeds[0]), largest(seeds[-1])) if seeds else (0, 0)
print(f"{launches} launches, {records} records, {sys.argv[2]} differences, host memory {first:.0f} -> {last:.0f} MB, "
      f"device memory {sys.argv[3]} -> {sys.argv[4]} MiB")
PYTHON
[[ -s $IKET_SOAK_LOG && $differences == 0 ]]
