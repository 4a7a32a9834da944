#!/usr/bin/env bash
# attach.sh: measures what attaching costs, beside NVIDIA's run-iket where there is one, from an unpacked
# `make dist` tree (or a build folder).
#
#   [RUN_IKET=BIN] attach.sh OUT [OPTION...]     options of attach.py: --only, --rates, --seconds, --device sim
#
# The tree is the folder above this script's that has bin/iket, or $IKET_TREE. $RUN_IKET is run-iket or a command
# line that starts it; PYTHONPATH is handed on. OUT gets attach.json, attach.md (docs/benchmarks/attach.md says
# what is in them) and log.txt. Under four minutes on one H200. Exit codes are attach.py's: 0 done, 1 a count was
# wrong or a row was not measured, 2 no GPU.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=${1:?usage: attach.sh OUT [OPTION...]}
shift
mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 2

source "$here/tree.sh"
script=$tree/bin/bench/attach.py
[[ -e $script ]] || script=$here/../../bench/attach/attach.py
run_iket=()
[[ -n ${RUN_IKET:-} ]] && run_iket=(--run-iket "$RUN_IKET")

# attach.py keeps its own time; this is for the case that it cannot.
timeout -k 5 "${SECONDS_LEFT:-238}" python3 "$script" --tree "$tree" --out "$out" "${run_iket[@]}" "$@" 2>&1 |
  tee "$out/log.txt"
exit "${PIPESTATUS[0]}"
