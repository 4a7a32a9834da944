"""Writes golden.json for the captures of a folder: python3 make_golden.py FOLDER.

Needs what perfetto_test.py needs: IKET_DUMP_MODEL in the environment and the `perfetto` package.
Look at the difference before it is kept: it says what the trace of a capture consists of.
"""

import glob
import json
import os
import sys
import tempfile

import perfetto_test


def main():
    folder = sys.argv[1]
    case = perfetto_test.PerfettoTest()
    golden = {}
    for capture in sorted(glob.glob(os.path.join(folder, "*.iketcap"))):
        with tempfile.TemporaryDirectory() as scratch:
            model, trace = case.make(scratch, "capture", capture, 100_000)
        case.check(model, trace)
        golden[os.path.basename(capture)] = perfetto_test.counts(model, trace)
    with open(os.path.join(folder, "golden.json"), "w", encoding="utf-8") as file:
        json.dump(golden, file, indent=1, ensure_ascii=False)
        file.write("\n")


if __name__ == "__main__":
    main()
