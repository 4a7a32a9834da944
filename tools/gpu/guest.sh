#!/usr/bin/env bash
# guest.sh: runs every guest of tests/guest/programs.txt without and with `iket profile`, from an unpacked
# `make dist` tree (or a build folder).
#
#   guest.sh [--device sim] OUT [NAME...]
#
# The tree is the folder above this script's that has bin/iket, or $IKET_TREE. OUT gets summary.txt and
# results.tar.gz (what every guest said). The exit code says that one does not pass. Python guests run
# where their modules are; the summary says which did not.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
device=gpu
if [[ ${1:-} == --device ]]; then
  device=${2:?usage: guest.sh [--device sim] OUT [NAME...]}
  shift 2
fi
out=${1:?usage: guest.sh [--device sim] OUT [NAME...]}
shift
mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 2

source "$here/tree.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
jobs=$(($(nproc) < 4 ? $(nproc) : 4))

python3 "$tree/bin/tests/guest/guest_matrix.py" --tree "$tree" --out "$work/results" \
  --device "$device" --jobs "$jobs" "$@"
code=$?
cp "$work/results/summary.txt" "$out/" 2>/dev/null
tar -C "$work" -czf "$out/results.tar.gz" results
exit "$code"
