#!/usr/bin/env bash
# compat.sh: the same programs collected by NVIDIA's run-iket and by ours, from an unpacked `make dist` tree (or a
# build folder); docs/benchmarks/compat.md says what is compared.
#
#   WHEELS=T [CARRIED=FOLDER] compat.sh OUT [STEP...]
#       steps: where cost gemm json zoo tilelang official cub session, in this order
#
# The tree is the folder above this script's that has bin/iket, or $IKET_TREE. T is what `wheels.sh unpack` made. FOLDER
# has the examples that are not ours: dense_gemm_persistent.py of CUTLASS (gemm, json) and minimal.py, payload_minimal.py
# and all_features.py of TileLang (tilelang). OUT gets summary.txt, whose tables are Markdown, and results.tar.gz. A step that
# fails, or lasts too long, does not keep the others from running; the exit code says that one failed. Some eight minutes
# on one H200; SECONDS_LEFT (default 570) bounds the whole, ROUNDS (2) says how often the GEMM is timed, JSON_SECONDS (240)
# how long run-iket may take to write the JSON of 28 M events, which it does beside the other steps.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=${1:?usage: WHEELS=T [CARRIED=FOLDER] compat.sh OUT [STEP...]}
shift
mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 2
all_steps=(where cost gemm json zoo tilelang official cub session)
steps=("$@")
((${#steps[@]})) || steps=("${all_steps[@]}")

source "$here/tree.sh"
iket=$tree/bin/iket
wheels=$(cd "${WHEELS:?compat: WHEELS is the folder that wheels.sh unpack made}" && pwd) || exit 2
carried=$(realpath -m "${CARRIED:-.carry}")
programs=$tree/bin/tests/compat
theirs=$wheels/bin/run-iket
ours=("$tree/bin/run-iket")
for needed in "$theirs" "${ours[0]}" "$programs/compare_traces.py"; do
  if [[ ! -e $needed ]]; then
    echo "compat: no $needed" >&2
    exit 2
  fi
done
export PYTHONPATH=$wheels:$wheels/nvidia_cutlass_dsl/dsl_packages PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
# Nothing may be taken from a run before: whether marks are kept is decided when a kernel is compiled.
export CUTE_DSL_DISABLE_FILE_CACHING=1
export PATH=$PATH:/usr/local/cuda/bin  # TileLang calls nvcc, session cuobjdump
marks_stay=(env CUTE_DSL_COMPILER_OPT=iket)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
results=$work/results
mkdir -p "$results" "$work/codes" "$work/cwd"
cd "$work/cwd" || exit 2
summary=$out/summary.txt
: >"$summary"
deadline=$((SECONDS + ${SECONDS_LEFT:-570}))
failed=()
rows=()
declare -A running began limits

say() { echo "$*" | tee -a "$summary"; }

# begin NAME SECONDS COMMAND...: starts it; what it says is kept in results/NAME.txt.
begin() {
  local name=$1 limit=$2
  shift 2
  ((limit > deadline - SECONDS)) && limit=$((deadline - SECONDS))
  began[$name]=$SECONDS limits[$name]=$limit
  if ((limit <= 0)); then
    echo "no time left" >"$results/$name.txt"
    echo 124 >"$work/codes/$name"
    running[$name]=
    return
  fi
  (
    timeout -k 5 "$limit" "$@" >"$results/$name.txt" 2>&1 </dev/null
    echo $? >"$work/codes/$name"
  ) &
  running[$name]=$!
}

# end NAME: waits for it and says how it went.
end() {
  local name=$1 code
  [[ -n ${running[$name]} ]] && wait "${running[$name]}"
  code=$(cat "$work/codes/$name")
  if ((code == 0)); then
    say "-- $name: done after $((SECONDS - began[$name])) s"
  else
    say "-- $name: FAILED with $code after $((SECONDS - began[$name])) s"
    show "$name" 8
    failed+=("$name")
  fi
  return "$code"
}

try() {
  begin "$@"
  end "$1"
}

# show NAME [LINES]: the last of what it said goes to the summary.
show() { tail -n "${2:-60}" "$results/$1.txt" | cut -c1-400 | tee -a "$summary"; }

# need NAME FILE...: are these there? Says so if not.
need() {
  local name=$1 file
  shift
  for file in "$@"; do
    [[ -e $file ]] && continue
    say "-- $name: not run, there is no $file"
    failed+=("$name")
    return 1
  done
}

# both NAME [OPTION...] -- COMMAND...: has both collectors begin to profile it, with the same options.
both() {
  local name=$1 options=()
  shift
  while [[ $1 != -- ]]; do
    options+=("$1")
    shift
  done
  begin "$name-theirs" 150 "$theirs" -o "$work/$name-theirs" --clobber profile --postprocess json "${options[@]}" "$@"
  begin "$name-ours" 150 "${ours[@]}" -o "$work/$name-ours" --clobber profile --postprocess json "${options[@]}" "$@"
}

# trace NAME: the path of the one trace that was collected, in $trace.
trace() {
  local found=("$work/$1"/*.trace.json)
  trace=${found[0]}
  if [[ ${#found[@]} != 1 || ! -e $trace ]]; then
    say "   $1: ${#found[@]} traces and not one: $(cd "$work/$1" 2>/dev/null && echo * | head -c 300)"
    failed+=("trace-$1")
    return 1
  fi
}

# compare NAME TITLE [OPTION...]: waits for both and compares their traces.
compare() {
  local name=$1 title=$2 good=1 one
  shift 2
  end "$name-theirs" || good=0
  end "$name-ours" || good=0
  trace "$name-theirs" || good=0
  one=$trace
  trace "$name-ours" || good=0
  if ((!good)); then
    rows+=("| $title | | | | | | | | **not compared** |")
    return 1
  fi
  compare_files "$name" "$title" "$one" "$trace" "$@"
}

compare_files() {
  local name=$1 title=$2 code
  shift 2
  try "compare-$name" 120 python3 "$programs/compare_traces.py" "$@" --title "$title"
  code=$?
  grep '^note:\|^difference' "$results/compare-$name.txt" | head -n 12 | cut -c1-300 | tee -a "$summary"
  rows+=("$(tail -n 1 "$results/compare-$name.txt")")
  # What differs is kept, so that it can be looked at elsewhere.
  if ((code)); then
    gzip -c "$1" | head -c 3000000 >"$results/$name-theirs.trace.json.gz"
    gzip -c "$2" | head -c 3000000 >"$results/$name-ours.trace.json.gz"
  fi
  return "$code"
}

step_where() {
  try where 60 bash -c "uname -a; nproc; nvidia-smi; nvcc --version | tail -2; '$iket' --version; python3 --version
    python3 -c 'import cutlass, torch; print(\"nvidia-cutlass-dsl\", cutlass.__version__, \"torch\", torch.__version__)'
    cd '$wheels' && echo *.dist-info"
  show where 40
}

# Cycles of an event in a loop of FMAs. Rings that keep all events, as run-iket does.
step_cost() {
  local cost=(python3 "$programs/event_cost.py")
  try cost-marked 60 "${marks_stay[@]}" "${cost[@]}"
  try cost-theirs 120 "$theirs" -o "$work/cost-theirs" --clobber profile --postprocess none -- "${cost[@]}"
  try cost-ours 60 "${marks_stay[@]}" "$iket" profile -o "$work/cost-ours" --ring 256K --memory 4G --export none -- \
    "${cost[@]}"
  show cost-ours 4
  try cost-table 10 python3 "$programs/tables.py" cost --marked "$results/cost-marked.txt" \
    --theirs "$results/cost-theirs.txt" --ours "$results/cost-ours.txt"
  show cost-table
}

# Sets $gemm to what runs the GEMM.
prepare_gemm() {
  local example=$carried/dense_gemm_persistent.py
  gemm=(python3 "$programs/gemm.py" "$example" "$work/gemm_marked.py")
  need gemm "$example" && try gemm-marks 10 python3 "$programs/gemm_marks.py" "$example" "$work/gemm_marked.py"
}

step_gemm() {
  local round arguments=() kind
  prepare_gemm || return
  for ((round = 1; round <= ${ROUNDS:-2}; ++round)); do
    try "gemm-marked-$round" 60 "${marks_stay[@]}" "${gemm[@]}" time
    try "gemm-theirs-$round" 150 "$theirs" -o "$work/gemm-theirs" --clobber profile --postprocess none -- \
      "${gemm[@]}" time
    try "gemm-ours-$round" 60 "${marks_stay[@]}" "$iket" profile -o "$work/gemm-ours" --ring 2M --memory 24G \
      --export none -- "${gemm[@]}" time
    show "gemm-ours-$round" 6
    rm -rf "$work"/gemm-{theirs,ours}
  done
  for kind in marked theirs ours; do arguments+=("--$kind" "$results/gemm-$kind"-*.txt); done
  try gemm-table 10 python3 "$programs/tables.py" gemm "${arguments[@]}"
  show gemm-table
  both gemm-once -- "${gemm[@]}" launch 1 --check
  compare gemm-once "persistent GEMM, one launch; medians by name" --durations names
  [[ -e $results/compare-gemm-once.txt ]] && show compare-gemm-once 20
  rm -rf "$work"/gemm-once-*
}

# The JSON of 24 launches of it. run-iket writes it beside the steps that follow; finish_json waits for it.
step_json() {
  local export="'$iket' export --format trace.json -o '$work/json-ours/24.trace.json' '$work'/json-ours/*.iketcap"
  prepare_gemm || return
  try json-theirs 150 "$theirs" -o "$work/json-theirs" --clobber profile --postprocess none --keep -- \
    "${gemm[@]}" launch 24 &&
    begin json-theirs-export "${JSON_SECONDS:-240}" bash -c "
      TIMEFORMAT='seconds %R'; time '$theirs' postprocess --format json '$work/json-theirs' || exit
      find '$work/json-theirs' -name '*.trace.json' -printf 'bytes %s\n'"
  try json-ours 100 "${marks_stay[@]}" "$iket" profile -o "$work/json-ours" --ring 1M --memory 10G --export none -- \
    "${gemm[@]}" launch 24
  show json-ours 6
  try json-ours-export 120 bash -c "TIMEFORMAT='seconds %R'; time $export || exit
    find '$work/json-ours' -name '*.trace.json' -printf 'bytes %s\n'"
  rm -rf "$work/json-ours"
}

finish_json() {
  local name=json-theirs-export code
  [[ -n ${running[$name]:-} ]] || return
  say ""
  say "== json, run-iket's"
  wait "${running[$name]}"
  code=$(cat "$work/codes/$name")
  # Not to be ready in time is a result; to fail is not.
  if ((code == 124 || code == 137)); then
    echo "stopped ${limits[$name]}" >>"$results/$name.txt"
  elif ((code)); then
    end "$name"
  fi
  try json-table 10 python3 "$programs/tables.py" json --theirs "$results/$name.txt" \
    --ours "$results/json-ours-export.txt"
  show json-table
  rm -rf "$work/json-theirs"
}

# Single durations depend on what is in which cache; medians over nine launches at each place do not. What one of
# run-iket's events costs more than ours, at most 50 ns here, makes ranges longer that have others inside.
repeated=(--durations launches --event-ns 50)
step_zoo() {
  local zoo=(python3 "$programs/zoo.py" --launches 9)
  both zoo -- "${zoo[@]}"
  both zoo-cluster --enabled-cluster 1,0,0 -- "${zoo[@]}" ranges
  both zoo-warps --warp-trace -- "${zoo[@]}" ranges types
  compare zoo "CuTe DSL zoo: types, ranges, 40 names" "${repeated[@]}"
  [[ -e $results/compare-zoo.txt ]] && show compare-zoo 40
  compare zoo-cluster "ranges, \`--enabled-cluster 1,0,0\`" "${repeated[@]}"
  compare zoo-warps "types, ranges, \`--warp-trace\`" "${repeated[@]}"
}

# Ours as `python -m iket.cli.main`, which is what TileLang's profile_command runs.
step_tilelang() {
  local python=$tree/lib/iket/python example name command
  need tilelang "$python/shim/iket/cli/main.py" "$carried"/{minimal,payload_minimal,all_features}.py || return
  local ours=(env "PYTHONPATH=$python/shim:$python:$wheels" python3 -m iket.cli.main)
  both tilelang -- python3 "$programs/tilelang_zoo.py" --launches 9
  both tilelang-payloads -- python3 "$programs/tilelang_zoo.py" --launches 9 --payloads
  for example in minimal payload_minimal all_features; do
    name=tilelang-$example command=(python3 "$carried/$example.py" --iket-output-dir "$work/$example")
    [[ $example == minimal ]] || command+=(--iket-runtime-payloads)
    both "$name" -- "${command[@]}"
  done
  compare tilelang "TileLang zoo, without payloads" "${repeated[@]}"
  compare tilelang-payloads "TileLang zoo, with payloads" "${repeated[@]}"
  [[ -e $results/compare-tilelang-payloads.txt ]] && show compare-tilelang-payloads 12
  for example in minimal payload_minimal all_features; do
    compare "tilelang-$example" "TileLang's examples/iket/$example.py; medians by name" --durations names --event-ns 50
  done
  if ! command -v python >/dev/null; then
    say "-- tilelang-command: not run, profile_command wants a program python"
    return
  fi
  try tilelang-command 150 env "PYTHONPATH=$python/shim:$python:$wheels" bash -c "
    command=\$(python3 -c 'import sys
from tilelang.tools.cuda.iket import profile_command
print(profile_command(sys.argv[2:], directory=sys.argv[1], postprocess=\"json\"))' \
      '$work/tilelang-command' python3 '$carried/minimal.py' --iket-output-dir '$work/command') || exit
    echo \"\$command\"; eval \"\$command\"" && trace tilelang-command && say "   $(basename "$trace") by profile_command"
}

# C++ with IKET_COMPAT=official: one launch of a cold kernel, so durations say little.
step_official() {
  local program
  need official "$tree/bin/tests/official" "$tree/bin/tests/official_extended" || return
  for program in official official_extended; do both "$program" -- "$tree/bin/tests/$program"; done
  for program in official official_extended; do
    compare "$program" "C++, \`IKET_COMPAT=official\`: $program, one cold launch, 1 µs allowed" --ns 1000 --event-ns 50
    check "$program" theirs official_check.py
    check "$program" ours official_check.py
  done
}

# check PROGRAM SIDE SCRIPT [OPTION...]: holds a trace to what the program's own check expects.
check() {
  local program=$1 side=$2 script=$3
  shift 3
  [[ $program == official_extended ]] && set -- "$@" --extended
  trace "$program-$side" || return
  try "check-$program-$side" 20 python3 "$tree/bin/tests/$script" "$trace" "$@"
  show "check-$program-$side" 10
}

# How often a tile looks back is chance: each trace is held to what is not.
step_cub() {
  need cub "$tree/bin/tests/cub" "$tree/bin/tests/cub_official" || return
  both cub_official -- "$tree/bin/tests/cub_official"
  begin cub-ours 60 "${ours[@]}" -o "$work/cub-ours" --clobber profile --postprocess json -- "$tree/bin/tests/cub"
  end cub-ours && check cub ours cub_check.py
  end cub_official-theirs && check cub_official theirs cub_check.py
  end cub_official-ours && check cub_official ours cub_check.py
  try cub-report 20 bash -c "'$iket' report '$work'/cub-ours/*.iketcap"
  show cub-report 60
}

# A program that profiles itself, linked with a libiket_injection.so: theirs or ours is found at run time.
step_session() {
  local program=$tree/bin/tests/sim/sim_self_profile code=0 side cubin
  local profiler=$wheels/nvidia_cutlass_dsl/dsl_packages/iket
  need session "$program" "$tree/lib/iket-session/libiket_injection.so" "$tree/bin/tests/official" || return
  try session-image 30 bash -c "cd '$work' && cuobjdump -xelf all '$tree/bin/tests/official'" || return
  cubin=$(find "$work" -maxdepth 1 -name '*.cubin' | head -n 1)
  local words=("$cubin" Forms version create usual start load 'launch=9' sync stop)
  try session-theirs 60 env "LD_LIBRARY_PATH=$profiler/profiler:$profiler" "$program" "${words[@]}" \
    "save=$work/session-theirs.json" destroy || code=1
  try session-ours 60 env "LD_LIBRARY_PATH=$tree/lib/iket-session" "$program" "${words[@]}" \
    "save=$work/session-ours.json" destroy || code=1
  for side in theirs ours; do
    say "   $side: $(tr '\n' ';' <"$results/session-$side.txt" | cut -c1-300)"
  done
  ((code)) && return
  # A collector may say something in between.
  codes() { grep -E '^[a-z]+ [^ ]' "$results/session-$1.txt"; }
  if [[ $(codes theirs) != "$(codes ours)" ]]; then
    say "   the calls return different codes"
    failed+=(session-codes)
  fi
  compare_files session "IketProfilingSession, C, 9 launches" "$work/session-theirs.json" "$work/session-ours.json" \
    "${repeated[@]}"
}

for step in "${steps[@]}"; do
  if ! declare -F "step_$step" >/dev/null; then
    echo "compat: no step '$step'; there are: ${all_steps[*]}" >&2
    exit 2
  fi
done
for step in "${steps[@]}"; do
  say ""
  say "== $step"
  "step_$step"
done
finish_json

if ((${#rows[@]})); then
  say ""
  say "| program | launches | warps | ranges | markers | payloads | largest difference of a duration | of a gap | result |"
  say "|---|---|---|---|---|---|---|---|---|"
  for row in "${rows[@]}"; do say "$row"; done
fi
tar -C "$work" -czf "$out/results.tar.gz" results
say ""
if ((${#failed[@]})); then
  say "FAILED: ${failed[*]}"
  exit 1
fi
say "all steps done in $SECONDS s"
