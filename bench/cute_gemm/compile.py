#!/usr/bin/env python3
"""Compiles CUTLASS's persistent GEMM for Hopper to the cubins that cute_gemm launches; no GPU is needed.

    compile.py dense_gemm_persistent.py OUT

OUT gets clean.cubin and marked.cubin. The example is examples/python/CuTeDSL/cute/hopper/kernel/dense_gemm/
dense_gemm_persistent.py of NVIDIA/cutlass (its licence is its own: neither it nor the cubins are part of this
repository); gemm_marks.py puts the marks in. Needs nvidia-cutlass-dsl on PYTHONPATH.
"""
import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile

MARKS = next(path for path in (
    os.path.join(os.path.dirname(os.path.abspath(__file__)), *parts)
    for parts in (("..", "tests", "compat", "gemm_marks.py"), ("..", "..", "tests", "gpu", "compat", "gemm_marks.py")))
    if os.path.exists(path))
CLASS = "HopperWgmmaGemmPersistentKernel"


def compile_here(source):
    """Compiles the kernel of an example; the DSL leaves its cubin in the current folder."""
    import cutlass
    import cutlass.cute as cute
    from cutlass.cute.runtime import make_fake_compact_tensor, make_fake_stream
    spec = importlib.util.spec_from_file_location("gemm_marked", source)
    module = importlib.util.module_from_spec(spec)
    sys.modules["gemm_marked"] = module
    spec.loader.exec_module(module)
    gemm = getattr(module, CLASS)(cutlass.Float32, (128, 256), (2, 1), 1, True)

    def matrix(order):
        return make_fake_compact_tensor(cutlass.Float16, (4096, 4096, 1), stride_order=order, assumed_align=16)

    cute.compile(gemm, matrix((1, 0, 2)), matrix((1, 0, 2)), matrix((1, 0, 2)), 66, make_fake_stream())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("example")
    parser.add_argument("out")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    example = os.path.abspath(args.example)
    if args.here:
        compile_here(example)
        return
    out = os.path.abspath(args.out)
    os.makedirs(out, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        marked = os.path.join(work, "marked.py")
        subprocess.run([sys.executable, MARKS, example, marked], check=True)
        for name, source, options in (("clean", example, ""), ("marked", marked, "iket")):
            folder = os.path.join(work, name)
            os.makedirs(folder)
            environment = dict(os.environ, CUTE_DSL_ARCH="sm_90a", CUTE_DSL_KEEP="cubin", CUTE_DSL_DUMP_DIR=folder,
                               CUTE_DSL_DISABLE_FILE_CACHING="1", CUTE_DSL_COMPILER_OPT=options)
            subprocess.run([sys.executable, os.path.abspath(__file__), "--here", source, out], check=True, cwd=folder,
                           env=environment)
            found = [os.path.join(at, file) for at, _, files in os.walk(folder) for file in files
                     if file.endswith(".cubin")]
            if len(found) != 1:
                sys.exit(f"compile: {len(found)} cubins of the {name} kernel in {folder}, not one")
            os.replace(found[0], os.path.join(out, f"{name}.cubin"))
            print(os.path.join(out, f"{name}.cubin"))


if __name__ == "__main__":
    main()
