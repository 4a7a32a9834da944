#!/bin/sh
# Makes the cubins and fatbins of this folder again, with nvcc 13.0 from PATH. See README.md.
set -eu
cd "$(dirname "$0")"
cubin() {  # OUTPUT SOURCE ARCH [OPTIONS...]
  output=$1 source=$2 arch=$3
  shift 3
  nvcc -std=c++17 -cubin -arch="$arch" "$@" "$source" -o "$output"
}
for arch in 80 90 90a 100a 120; do cubin saxpy.sm_$arch.cubin saxpy.cu sm_$arch; done
cubin saxpy.sm_90a.lineinfo.cubin saxpy.cu sm_90a -lineinfo
for arch in 80 90a 100a; do cubin lines.sm_$arch.cubin lines.cu sm_$arch -lineinfo; done
cubin saxpy.sm_90a.debug.cubin saxpy.cu sm_90a -G
cubin saxpy.sm_100a.debug.cubin saxpy.cu sm_100a -G
for arch in 80 90a 100a; do cubin pipeline.sm_$arch.cubin pipeline.cu sm_$arch; done
cubin pipeline.sm_90a.rdc.cubin pipeline.cu sm_90a -rdc=true
cubin pointers.sm_90a.rdc.cubin pointers.cu sm_90a -rdc=true
cubin setmaxnreg.sm_90a.cubin setmaxnreg.cu sm_90a

object=$(mktemp -d)
trap 'rm -rf "$object"' EXIT
nvcc -std=c++17 -arch=sm_90a -rdc=true -c pointers.cu -o "$object/pointers.o" 2> /dev/null
nvcc -arch=sm_90a -dlink -cubin "$object/pointers.o" -o pointers.sm_90a.linked.cubin 2> /dev/null

nvcc -std=c++17 -arch=sm_90a -rdc=true -lineinfo -c lines.cu -o "$object/lines.o"
nvcc -arch=sm_90a -dlink -cubin "$object/lines.o" -o lines.sm_90a.linked.cubin

fatbin() {  # OUTPUT OPTIONS...
  output=$1
  shift
  nvcc -std=c++17 -fatbin saxpy.cu "$@" -o "$output"
}
several="-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90a,code=sm_90a
 -gencode arch=compute_100a,code=sm_100a -gencode arch=compute_90,code=compute_90"
# shellcheck disable=SC2086  # $several is a list
{
  fatbin saxpy.default.fatbin $several
  fatbin saxpy.none.fatbin $several --compress-mode=none
  fatbin saxpy.zstd.fatbin $several -Xfatbin -compress-all
  fatbin saxpy.lz4.fatbin $several -Xfatbin -compress-all --compress-mode=speed
}
fatbin saxpy.ptx.fatbin -gencode arch=compute_90,code=compute_90
fatbin saxpy.lto.fatbin -gencode arch=compute_90a,code=lto_90a
fatbin saxpy.rdc.fatbin -arch=sm_90a -rdc=true -lineinfo

# The debug information names this folder; a name of the same length keeps every offset.
neutral=/$(printf '%s' "${PWD#/}" | tr -c '' 'x')
for file in *.cubin *.fatbin; do LC_ALL=C sed -i "s|$PWD|$neutral|g" "$file"; done
