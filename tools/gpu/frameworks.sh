#!/usr/bin/env bash
# frameworks.sh: runs the scripts of examples/frameworks without and with `iket profile`, from an unpacked `make
# dist` tree (or a build folder), and holds their captures to the launches and events that they state.
#
#   frameworks.sh [--device sim] OUT [NAME...]
#
# The tree is the folder above this script's that has bin/iket, or $IKET_TREE. OUT gets summary.txt, a line a
# script, and results.tar.gz (what every script said, captures and their reports). The exit code says that one
# does not pass. What lacks a module is named as not run. Some two minutes.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
device=gpu
if [[ ${1:-} == --device ]]; then
  device=${2:?usage: frameworks.sh [--device sim] OUT [NAME...]}
  shift 2
fi
out=${1:?usage: frameworks.sh [--device sim] OUT [NAME...]}
shift
mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 2

source "$here/tree.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 "$tree/bin/tests/frameworks/frameworks_check.py" --tree "$tree" --out "$work/results" \
  --device "$device" --jobs "${JOBS:-4}" "$@"
code=$?
cp "$work/results/summary.txt" "$out/" 2>/dev/null
tar -C "$work" -czf "$out/results.tar.gz" results
exit "$code"
