"""handlers_test.py NM OBJECT...: handlers compiled for newer hosts leave nothing for older ones to find.

A function that several objects define (a template, an inline function) is linked once, and the linker
takes any of them: the one with vector instructions that not every host has would then run everywhere.
So objects compiled for a level of the host's instructions define nothing of that kind.
"""
import subprocess
import sys

# A reference to the runtime's function, data and the same everywhere.
HARMLESS = {"DW.ref.__gxx_personality_v0"}


def shared_definitions(nm, path):
    out = subprocess.run([nm, "-C", "--defined-only", path], check=True, capture_output=True, text=True).stdout
    lines = [line.split(maxsplit=2) for line in out.splitlines() if line]
    assert lines, f"{path} defines nothing"
    return [name for _, kind, name in lines if kind in "WVu" and name not in HARMLESS]


def main():
    nm, *objects = sys.argv[1:]
    assert objects, "no objects"
    faults = [f"{path}: {name}" for path in objects for name in shared_definitions(nm, path)]
    print("\n".join(faults + [f"{len(objects)} objects, {len(faults)} definitions that older hosts might run"]))
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
