#!/bin/sh
# Makes the cubins of this folder again, with nvcc 13.0 from PATH. See README.md.
set -eu
cd "$(dirname "$0")"
options="-std=c++20 -I../../../include -DIKET_ENABLE"
cubin() {  # SOURCE ARCH [SUFFIX OPTION]
  # shellcheck disable=SC2086  # $options is a list
  nvcc $options -cubin -arch="$2" ${4:-} "$1.cu" -o "$1.$2${3:-}.cubin"
}
for arch in sm_80 sm_90a sm_100a sm_120; do
  for source in plain payloads exits stores; do cubin $source $arch; done
done
cubin plain sm_90a .O0 -Xptxas=-O0
cubin values sm_90a

object=$(mktemp -d)
trap 'rm -rf "$object"' EXIT
for arch in sm_80 sm_90a sm_100a sm_120; do
  # shellcheck disable=SC2086
  nvcc $options -arch=$arch -rdc=true -c calls.cu -o "$object/calls.o"
  nvcc -arch=$arch -dlink -cubin "$object/calls.o" -o calls.$arch.linked.cubin
done
# shellcheck disable=SC2086
nvcc $options -arch=sm_90a -rdc=true -c reach.cu -o "$object/reach.o"
# shellcheck disable=SC2086
nvcc $options -arch=sm_90a -rdc=true -Xptxas=-O0 -c reach_unoptimised.cu -o "$object/unoptimised.o"
nvcc -arch=sm_90a -dlink -cubin "$object/reach.o" "$object/unoptimised.o" \
  -o reach.sm_90a.linked.cubin
