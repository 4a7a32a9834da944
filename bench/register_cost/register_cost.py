#!/usr/bin/env python3
"""What marks take of a kernel's registers, stack and code while nobody traces: docs/benchmarks/registers.md.

    register_cost.py [--into PAGE] [ARCHITECTURE...]      default: 80 90a 100a 120

Compiles the GEMM examples and ten kernels around algorithms of CUB with marks and without; needs nvcc (from $IKET_NVCC or
PATH) with the headers of CCCL, and no GPU.
"""
import argparse
import concurrent.futures
import os
import re
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SOURCES = {"cub_blocks": os.path.join(HERE, "cub_blocks.cu"),
           "gemm_mma": os.path.join(ROOT, "examples/gemm_mma/gemm_mma.cu"),
           "gemm_wgmma": os.path.join(ROOT, "examples/gemm_wgmma/gemm_wgmma.cu")}
KERNELS = re.compile(r"block_|warp_scan|GemmMma|GemmWgmma")
MARK = "<!-- What follows is by register_cost.py. -->"


def compiled(folder, source, arch, on):
    """(registers, stack, spill stores, bytes of code) by kernel."""
    cubin = os.path.join(folder, f"{os.path.basename(source)}.{arch}.{on}")
    done = subprocess.run([os.environ.get("IKET_NVCC", "nvcc"), "-std=c++20", "-O3", f"-arch=sm_{arch}", "-cubin", "-I" +
                           os.path.join(ROOT, "include"), "-I" + os.path.join(ROOT, "examples"), "-Xptxas=-v",
                           *(["-DIKET_ENABLE"] if on else []), "-o", cubin, source],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stdout)
    found = {}
    for part in done.stdout.split("Compiling entry function '")[1:]:
        name = part.split("'", 1)[0]
        numbers = [int(re.search(pattern, part)[1]) for pattern in
                   (r"Used (\d+) registers", r"(\d+) bytes stack frame", r"(\d+) bytes spill stores")]
        if KERNELS.search(name):
            found[name] = numbers
    sizes = subprocess.run(["readelf", "-SW", cubin], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                           check=True).stdout
    for name, size in re.findall(r"\] \.text\.(\S+)\s+\S+\s+[0-9a-f]+\s+[0-9a-f]+\s+([0-9a-f]+)", sizes):
        if name in found:
            found[name].append(int(size, 16))
    return found


def runs(name, arch):
    """The GEMMs wait on mbarriers as sm_90 does; one is made of instructions of sm_90a alone."""
    return name == "cub_blocks" or (arch == 90 if name == "gemm_wgmma" else arch >= 90)


def short(name):
    return "gemm_mma" if "GemmMma" in name else "gemm_wgmma" if "GemmWgmma" in name else name


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("architectures", nargs="*", default=["80", "90a", "100a", "120"])
    parser.add_argument("--into", help="puts the table behind the mark in this page")
    options = parser.parse_args()
    jobs = [(name, arch, on) for arch in options.architectures for name in SOURCES for on in (False, True)
            if runs(name, int(arch.rstrip("af")))]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = dict(zip(jobs, pool.map(lambda job: compiled(folder, SOURCES[job[0]], job[1], job[2]), jobs)))
    rows = {}
    for (name, arch, on), kernels in results.items():
        for kernel, numbers in kernels.items():
            rows.setdefault(short(kernel), {}).setdefault(arch, [None, None])[on] = numbers
    lines = ["| kernel | " + " | ".join(f"sm_{arch}" for arch in options.architectures) + " |",
             "|---" * (len(options.architectures) + 1) + "|"]
    for kernel, by_arch in sorted(rows.items()):
        cells = []
        for arch in options.architectures:
            if arch not in by_arch:
                cells.append("")
                continue
            off, marked = by_arch[arch]
            cell = f"{off[0]} -> {marked[0]}"
            if off[1:3] != marked[1:3]:
                cell += f", stack {off[1]} -> {marked[1]}, spills {off[2]} -> {marked[2]}"
            cells.append(f"{cell}; {off[3] // 16} -> {marked[3] // 16}")
        lines.append(f"| {kernel} | " + " | ".join(cells) + " |")
    table = "\n".join(lines) + "\n"
    if not options.into:
        print(table, end="")
        return
    with open(options.into, encoding="utf-8") as file:
        before, mark, _ = file.read().partition(MARK)
    if not mark:
        raise SystemExit(f"{options.into} has no line '{MARK}'")
    with open(options.into, "w", encoding="utf-8") as file:
        file.write(f"{before}{mark}\n\n{table}")


if __name__ == "__main__":
    main()
