#!/usr/bin/env bash
# first-light.sh: does everything that only a GPU can show, from an unpacked `make dist` tree.
#
#   first-light.sh OUT [STEP...]      steps: where oracle corpus examples events ctas launches gemm sanitizer
#
# The tree is the folder above this script's that has bin/iket, or $IKET_TREE. OUT gets summary.txt,
# results.tar.gz (what every step said, tables, logs) and captures.tar.gz (the examples'). A step
# that fails, or lasts too long, does not keep the others from running; the exit code says that one
# failed. About five minutes on one H200; SECONDS_LEFT (default 350) bounds the whole.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=${1:?usage: first-light.sh OUT [STEP...]}
shift
mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 2
all_steps=(where oracle corpus examples events ctas launches gemm sanitizer)
steps=("$@")
((${#steps[@]})) || steps=("${all_steps[@]}")

source "$here/tree.sh"
iket=$tree/bin/iket
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
results=$work/results
captures=$work/captures
mkdir -p "$results" "$captures"
summary=$out/summary.txt
: >"$summary"
deadline=$((SECONDS + ${SECONDS_LEFT:-350}))
failed=()

say() { echo "$*" | tee -a "$summary"; }

# try NAME SECONDS COMMAND...: runs it, keeps what it said in results/NAME.txt.
try() {
  local name=$1 limit=$2 began=$SECONDS code
  shift 2
  ((limit > deadline - SECONDS)) && limit=$((deadline - SECONDS))
  if ((limit <= 0)); then
    say "-- $name: not run, no time left"
    failed+=("$name")
    return 1
  fi
  timeout -k 5 "$limit" "$@" >"$results/$name.txt" 2>&1
  code=$?
  if ((code == 0)); then
    say "-- $name: done in $((SECONDS - began)) s"
  else
    say "-- $name: FAILED with $code after $((SECONDS - began)) s"
    failed+=("$name")
  fi
  return "$code"
}

# show NAME [LINES]: what the step said goes to the summary too.
show() { tail -n "${2:-60}" "$results/$1.txt" | cut -c1-400 | tee -a "$summary"; }

step_where() {
  try where 30 bash -c "uname -a; nvidia-smi; $iket --version; python3 --version; nproc"
  show where 40
}

step_oracle() {
  try oracle 150 python3 "$tree/bin/tests/oracle_check.py" --iket "$iket" \
    --oracle "$tree/bin/tests/oracle" --out "$work/oracle"
  show oracle 40
  tail -n +1 "$work"/oracle/*.txt >"$results/oracle-profiles.txt" 2>/dev/null
  # What differs is kept, so that it can be looked at elsewhere.
  local case
  for case in $(sed -n 's/^case \([a-z0-9]*\): DIFFERS.*/\1/p' "$results/oracle.txt"); do
    gzip -c "$work/oracle/$case.log" | head -c 8000000 >"$results/$case.log.gz"
    find "$work/oracle/$case" -name '*.iketcap' -size -3M -exec cp {} "$results/$case.iketcap" \;
  done
}

# Every build of the corpus computes the same, and the patched one records a mark a warp.
step_corpus() {
  local variant cubins=$tree/bin/tests/corpus
  local check=(python3 "$tree/bin/tests/corpus_check.py" --runner "$tree/bin/tests/corpus_runner"
    --expected "$cubins/results.jsonl")
  for variant in O3 O1 O0 marked; do
    try "corpus-$variant" 60 "${check[@]}" --cubins "$cubins/{}.$variant.cubin"
    show "corpus-$variant" 10
  done
  try corpus-patched 60 "${check[@]}" --cubins "$cubins/{}.marked.cubin" --iket "$iket" \
    --out "$work/corpus"
  show corpus-patched 10
}

# example NAME OPTIONS...: profiles an example, keeps its capture, reads it with every command.
example() {
  local name=$1 capture
  shift
  try "profile-$name" 60 "$iket" profile -o "$work/$name" --clobber -- \
    "$tree/bin/examples/$name" "$@"
  show "profile-$name" 14
  for capture in "$work/$name"/*.iketcap; do
    if [[ ! -e $capture ]]; then
      say "   no capture of $name"
      failed+=("capture-$name")
      return
    fi
    cp "$capture" "$captures/$name.iketcap"
    say "   $name.iketcap: $(stat -c %s "$capture") bytes"
  done
  try "report-$name" 20 "$iket" report "$captures/$name.iketcap"
  try "info-$name" 20 "$iket" info "$captures/$name.iketcap"
  try "check-$name" 20 "$iket" check "$captures/$name.iketcap"
}

step_examples() {
  local form
  for form in "" _driver; do
    example "saxpy${form}_marked" --n 262144 --iterations 1 --warmup 0
    example "gemm_mma${form}_marked" --size 1024 --iterations 1 --warmup 0
    example "gemm_wgmma${form}_marked" --size 1024 --iterations 1 --warmup 0
  done
  [[ -e $results/report-gemm_wgmma_marked.txt ]] && show report-gemm_wgmma_marked 40
  # Without marks: the program must not notice, and iket says that there is nothing (exit code 4).
  try unmarked 30 bash -c "'$iket' profile -o '$work/unmarked' -- '$tree/bin/examples/saxpy' --n 4096; (( \$? == 4 ))"
  show unmarked 4
}

step_events() {
  try event_cost 60 python3 "$tree/bin/bench/event_cost.py" --iket "$iket" --out "$results/event_cost"
  show event_cost
}
step_ctas() {
  try many_ctas 60 python3 "$tree/bin/bench/many_ctas.py" --iket "$iket" --out "$results/many_ctas"
  show many_ctas
}
step_launches() {
  try launch_cost 60 python3 "$tree/bin/bench/launch_cost.py" --iket "$iket" \
    --out "$results/launch_cost"
  show launch_cost
}
step_gemm() {
  try gemm_cost 120 python3 "$tree/bin/bench/gemm_cost.py" --tree "$tree" --out "$results/gemm_cost"
  show gemm_cost
}

step_sanitizer() {
  local sanitizer
  sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
  if [[ -z $sanitizer ]]; then
    say "-- sanitizer: compute-sanitizer is not on this machine, nothing shown"
    return
  fi
  try sanitizer 90 "$iket" profile -o "$work/sanitizer" --export none -- "$sanitizer" \
    --error-exitcode 9 --tool memcheck "$tree/bin/examples/saxpy_driver_marked" \
    --n 65536 --iterations 1 --warmup 0
  show sanitizer 20
}

for step in "${steps[@]}"; do
  if ! declare -F "step_$step" >/dev/null; then
    echo "first-light: no step '$step'; there are: ${all_steps[*]}" >&2
    exit 2
  fi
done
for step in "${steps[@]}"; do
  say ""
  say "== $step"
  "step_$step"
done

tar -C "$work" -czf "$out/results.tar.gz" results
tar -C "$work" -czf "$out/captures.tar.gz" captures
say ""
if ((${#failed[@]})); then
  say "FAILED: ${failed[*]}"
  exit 1
fi
say "all steps done in $SECONDS s"
