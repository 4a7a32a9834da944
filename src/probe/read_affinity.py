#!/usr/bin/env python3
"""Has the probe's kernels read SR_AFFINITY where they were compiled to read %lanemask_eq.

    read_affinity.py IN OUT

PTX has no name for that register, which holds the number of the GPC (docs/design/topology.md). In the machine code of
all targets S2R is 0x919 in the low 12 bits, and the register's number stands in bits 72 to 79.
"""
import struct
import sys

S2R, LANEMASK_EQ, AFFINITY = 0x919, 0x38, 0x1C


def main():
    source, target = sys.argv[1:]
    with open(source, "rb") as file:
        code = bytearray(file.read())
    found = [at for at in range(0, len(code) - 15, 8)
             if struct.unpack_from("<Q", code, at)[0] & 0xFFF == S2R and code[at + 9] == LANEMASK_EQ]
    targets = code.count(b"\x7fELF")
    if not found or len(found) != targets:
        sys.exit(f"{source}: {len(found)} reads of %lanemask_eq in code for {targets} targets, expected one in each")
    for at in found:
        code[at + 9] = AFFINITY
    with open(target, "wb") as file:
        file.write(code)


if __name__ == "__main__":
    main()
