#!/usr/bin/env bash
# wheels.sh: NVIDIA's and TileLang's tools, for a machine with a GPU and without a network. Their licences do not
# let us ship them, so nothing of this is part of a tree that we pack.
#
#   wheels.sh pack OUT         here: downloads the wheels and writes OUT/*.tar.xz, each less than 60 MiB
#   wheels.sh unpack FROM TO   there: unpacks them into TO and makes TO/bin/run-iket, which finds its packages
#
# `pack` leaves out what no program needs at run time (sources, static libraries, a second copy of libz3) and stops
# where a wheel does not hold what is left out: then its layout has changed, look at it. The machine there has
# Python 3.12, torch and cuda-bindings. Scripts that import the packages want
# PYTHONPATH=TO:TO/nvidia_cutlass_dsl/dsl_packages. `pack` takes some four minutes of one core.
set -euo pipefail

python_version=3.12
wheels=(
  nvidia-cutlass-dsl==4.8.1 nvidia-cutlass-dsl-libs-base==4.8.1 nvidia-cutlass-dsl-libs-core==4.8.1
  nvidia-cutlass-dsl-libs-cu13==4.8.1
  tilelang==0.1.15 apache-tvm-ffi==0.1.12 z3-solver==4.15.4.0 torch-c-dlpack-ext==0.1.5
)
left_out=(
  z3_solver-4.15.4.0.data z3/include build_backend.py
  nvidia_cutlass_dsl/cu13/lib/libcuda_dialect_runtime_static.a
  tilelang/3rdparty/tvm/src tilelang/3rdparty/cutlass/tools
  tilelang/src/{ascend,backend,cpu,cuda,layout,metal,op,rocm,runtime,support,transform,webgpu}
  tvm_ffi/3rdparty
)

download() {
  local platforms=() glibc
  for glibc in 17 24 27 28 31 34 35; do platforms+=(--platform "manylinux_2_${glibc}_x86_64"); done
  python3 -m pip download -q --no-deps --only-binary=:all: --python-version "$python_version" \
    --implementation cp "${platforms[@]}" --platform manylinux2014_x86_64 -d "$1" "${wheels[@]}"
}

# piece NAME PATH...: one archive of these paths of the tree.
piece() {
  local file=$out/$1.tar.xz
  shift
  tar --sort=name --owner=0 --group=0 --numeric-owner -C "$work/tree" -c "$@" |
    xz -c --x86 --lzma2=preset=9e,dict=192MiB >"$file"
  local bytes
  bytes=$(stat -c %s "$file")
  echo "$file: $bytes bytes"
  if ((bytes > 60 << 20)); then
    echo "wheels: $file is larger than 60 MiB" >&2
    return 1
  fi
}

pack() {
  mkdir -p "$1" && out=$(cd "$1" && pwd)
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  download "$work/wheels"
  local wheel path
  for wheel in "$work"/wheels/*.whl; do unzip -q -o "$wheel" -d "$work/tree"; done
  for path in "${left_out[@]}"; do
    if [[ ! -e $work/tree/$path ]]; then
      echo "wheels: no $path in these wheels: their layout has changed" >&2
      return 1
    fi
    rm -r "${work:?}/tree/$path"
  done
  cmp -s "$work"/tree/z3/lib/libz3.so{,.4.15} && ln -sf libz3.so.4.15 "$work/tree/z3/lib/libz3.so"
  # For releases of torch older than the one there, which needs none.
  rm "$work"/tree/torch_c_dlpack_ext/libtorch_c_dlpack_addon_torch*.so

  rm -f "$out"/*.tar.xz
  local compiler=nvidia_cutlass_dsl/dsl_packages/cutlass/_mlir/_mlir_libs all=() dsl=() rest=()
  mapfile -t all < <(cd "$work/tree" && printf '%s\n' *)
  for path in "${all[@]}"; do
    if [[ $path == nvidia_cutlass_dsl* ]]; then dsl+=("$path"); else rest+=("$path"); fi
  done
  piece dsl-compiler "$compiler"
  piece dsl --exclude="$compiler" "${dsl[@]}"
  piece tilelang "${rest[@]}"
}

unpack() {
  local from=$1 to=$2 archive jobs=() job
  mkdir -p "$to" && to=$(cd "$to" && pwd)
  for archive in "$from"/*.tar.xz; do
    python3 -c 'import sys, tarfile
with tarfile.open(sys.argv[1], "r:xz") as archive: archive.extractall(sys.argv[2], filter="tar")' \
      "$archive" "$to" &
    jobs+=($!)
  done
  for job in "${jobs[@]}"; do wait "$job"; done
  mkdir -p "$to/bin"
  cat >"$to/bin/run-iket" <<PYTHON
#!/usr/bin/env python3
import os
import sys

# The program under run-iket imports the packages, too.
packages = ["$to", "$to/nvidia_cutlass_dsl/dsl_packages"]
sys.path[:0] = packages
os.environ["PYTHONPATH"] = os.pathsep.join(packages + [os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
from iket.cli.main import entrypoint

sys.exit(entrypoint())
PYTHON
  chmod +x "$to/bin/run-iket"
}

case "${1:-}:$#" in
  pack:2) pack "$2" ;;
  unpack:3) unpack "$2" "$3" ;;
  *)
    echo "usage: wheels.sh pack OUT | wheels.sh unpack FROM TO" >&2
    exit 2
    ;;
esac
