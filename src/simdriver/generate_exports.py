"""Writes what the stand-in driver exports, from the toolkit's own headers.

Usage: generate_exports.py --compiler CXX --include FOLDER --output FOLDER

  exports.map       the linker's list: every function that cuda.h and cudaProfiler.h declare
  exports.cpp       for each of them a weak definition that says "not supported"; what the room
                    implements replaces it when the library is linked
  per_thread.cpp    the *_ptsz and *_ptds twins: the same call with the per-thread default stream
  proc_address.inc  rows {base name, exported name, first CUDA version, per-thread} for
                    cuGetProcAddress, from the versions in cudaTypedefs.h
  errors.inc        rows {number, name} of CUresult
"""

import argparse
import pathlib
import re
import subprocess

HEADERS = ("cuda.h", "cudaProfiler.h")
PROTOTYPE = re.compile(r"\bCUresult\s+(cu[A-Z]\w*)\s*\(([^;{}]*)\)\s*;")
TYPEDEFS = ("cudaTypedefs.h", "cudaProfilerTypedefs.h")
# The names that cuda.h gives to a function of another name.
RENAMED = {"cuGraphInstantiate": [("cuGraphInstantiateWithFlags", 12000)]}


def preprocessed(compiler, include, headers):
    source = "#define __CUDA_API_VERSION_INTERNAL\n"
    source += "".join(f"#include <{header}>\n" for header in headers)
    command = [compiler, "-E", "-P", "-x", "c++", f"-I{include}", "-"]
    done = subprocess.run(command, input=source.encode(), stdout=subprocess.PIPE, check=True)
    return re.sub(r"\s+", " ", done.stdout.decode())


def argument_names(parameters):
    """The names in a parameter list; none of these functions takes a function by its type."""
    if parameters.strip() in ("", "void"):
        return []
    return [re.sub(r"\[.*?\]", "", text).split()[-1].lstrip("*&") for text in parameters.split(",")]


def prototypes(text):
    return {name: parameters.strip() for name, parameters in PROTOTYPE.findall(text)}


def proc_address_rows(typedefs, names):
    """(base, exported, since, per thread): the n-th version of a function is the n-th export."""
    versions = {}
    for base, version, twin in re.findall(r"\bPFN_(cu\w+?)_v(\d+)(_pt[sd][sz])?\b", typedefs):
        versions.setdefault((base, twin), set()).add(int(version))
    rows = []
    for (base, twin), since in sorted(versions.items()):
        candidates = [base] + [f"{base}_v{number}" for number in range(2, 9)]
        exported = [name + twin for name in candidates if name + twin in names]
        # A header that forgets an old version still names the newest ones.
        since = sorted(since)
        for name, version in zip(reversed(exported), reversed(since)):
            rows.append((base, name, version, twin != ""))
    for base, answers in RENAMED.items():
        rows += [(base, name, version, False) for name, version in answers if name in names]
    return sorted(rows, key=lambda row: (row[0], row[3], row[2]))


def error_rows(text):
    body = re.search(r"enum cudaError_enum \{(.*?)\}", text).group(1)
    return re.findall(r"\b(CUDA_\w+) = (\d+)", body)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--include", required=True)
    parser.add_argument("--output", required=True, type=pathlib.Path)
    options = parser.parse_args()

    text = preprocessed(options.compiler, options.include, HEADERS)
    declared = prototypes(text)
    twins = {name for name in declared if re.search(r"_pt[sd][sz]$", name)}
    twins = {name for name in twins if re.sub(r"_pt[sd][sz]$", "", name) in declared}
    typedefs = preprocessed(options.compiler, options.include, TYPEDEFS)
    rows = proc_address_rows(typedefs, declared)

    head = "// Written by generate_exports.py. Do not edit.\n"
    listed = "".join(f"    {name};\n" for name in sorted(declared))
    (options.output / "exports.map").write_text("{\n  global:\n" + listed + "  local:\n    *;\n};\n")

    lines = [head, '#include "simdriver/say.h"\n\n']
    for name in sorted(set(declared) - twins):
        lines.append(f'extern "C" __attribute__((weak)) int {name}() {{\n')
        lines.append(f'  return iket::simdriver::NotSupported("{name}");\n}}\n')
    (options.output / "exports.cpp").write_text("".join(lines))

    lines = [head, '#include "simdriver/cuda_api.h"\n#include "simdriver/default_stream.h"\n\n']
    lines.append('extern "C" {\n')
    for name in sorted(twins):
        parameters = declared[name]
        call = f"{re.sub(r'_pt[sd][sz]$', '', name)}({', '.join(argument_names(parameters))})"
        lines.append(f"CUresult {name}({parameters}) {{\n")
        lines.append(f"  const iket::simdriver::PerThreadDefaultStream scope;\n  return {call};\n}}\n")
    lines.append("}\n")
    (options.output / "per_thread.cpp").write_text("".join(lines))

    (options.output / "proc_address.inc").write_text(
        head
        + "".join(
            f'IKET_PROC_ADDRESS("{base}", {name}, {since}, {"true" if twin else "false"})\n'
            for base, name, since, twin in rows
        )
    )
    (options.output / "errors.inc").write_text(
        head + "".join(f"IKET_ERROR({name}, {number})\n" for name, number in error_rows(text))
    )


if __name__ == "__main__":
    main()
