"""Every snippet of docs/device-api.md compiles, with marks and without, and records what the page says.

A block ```cuda is the body of a kernel (float* data, int n), or, where it has a __global__, a file. The block ```text
behind it is what its first warp records, as the timeline shows it, in the order of begins.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "perfetto"))
import replay  # noqa: E402

SOURCE = os.environ["IKET_SOURCE_DIR"]
HEAD = """#include <cuda_fp16.h>
#include <iket/iket.cuh>
{using}
extern "C" __global__ void snippet(float* data, int n) {{
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
"""


def snippets():
    """(title, standard, code, what it records) of each block."""
    with open(os.path.join(SOURCE, "docs/device-api.md"), encoding="utf-8") as file:
        page = file.read()
    for found in re.finditer(r"```cuda\n(.*?)```\n+```text\n(.*?)```", page, re.DOTALL):
        code, text = found.groups()
        title = re.findall(r"^## (.*)", page[:found.start()], re.MULTILINE)[-1]
        standard = "17" if code.startswith("// C++17") else "20"
        yield f"{title}: {code.splitlines()[0].strip()}", standard, code, text


def values(args):
    """" 3" of a payload, " m=3 n=4" of values with names."""
    def shown(value):
        return f"{value:g}" if isinstance(value, float) else str(value)

    return "".join(f" {shown(value)}" if name in ("payload", "end_payload") else f" {name.removeprefix('end_')}={shown(value)}"
                   for name, value in args.items())


def story(trace):
    """What the first warp recorded, a line each."""
    lives = [s for s in trace.slices if s.name == "Warp Life Time"]
    life = min(lives, key=lambda s: (s.args["cta"], s.args["warp"]))
    warp = trace.path(life.track)
    speaker = "(" + re.sub(r"^(warp \d+) \(.*", r"\1", warp[-1], flags=re.S) + ")"  # without its role
    lines = []
    for event in [*trace.slices, *trace.instants]:
        path = trace.path(event.track)
        # Its own tracks, and those of groups that it speaks for.
        if path == warp or path[:len(warp) - 1] != warp[:-1]:
            continue
        if path[len(warp) - 1] != warp[-1] and not path[-1].endswith(speaker):
            continue
        is_range = isinstance(event, replay.Slice)
        args = {name: value for name, value in event.args.items() if name not in ("cycles", "source")}
        ends = {name: args.pop(name) for name in list(args) if name.startswith("end_")}
        text = ("range " if is_range else "mark ") + event.name + values(args)
        if ends:
            text += ", at its end" + values(ends)
        if path[-1].split(" (")[0] not in ("StackedRanges", "Marker", event.name) or path[-1].endswith(speaker):
            text += f", in {path[-1]}"
        lines.append((event.begin if is_range else event.ns, text))
    return "".join(line + "\n" for _, line in sorted(lines, key=lambda line: line[0]))


class DeviceApiTest(unittest.TestCase):
    maxDiff = None

    def compile(self, folder, code, standard, *options):
        path = os.path.join(folder, "snippet.cu")
        if "__global__" not in code:
            using = "using namespace iket::literals;" if standard == "20" else ""
            code = HEAD.format(using=using) + code + "\n  data[i] += 1.0f;\n}\n"
        with open(path, "w", encoding="utf-8") as file:
            file.write(code)
        cubin = os.path.join(folder, "snippet.cubin")
        done = subprocess.run([os.environ["IKET_NVCC"], "-arch=sm_90", f"-std=c++{standard}", "-cubin",
                               "-I" + os.path.join(SOURCE, "include"), *options, "-o", cubin, path],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout)
        return cubin

    def profile(self, folder, cubin, ending):
        """The path of what was written with this ending."""
        output = os.path.join(folder, "out")
        done = subprocess.run([os.environ["IKET"], "profile", "--device", "sim", "--export", "pftrace", "-o",
                               output, "--", os.environ["IKET_HELLO"], cubin, "snippet", "3"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout)
        path, = (name for name in os.listdir(output) if name.endswith(ending))
        return os.path.join(output, path)

    def test_places(self):
        """With -lineinfo a report says where each name stands in the source."""
        code = 'iket::mark("here"_ev);\nfor (int k = 0; k < n; ++k) {\n  iket::range tile{"tile"_ev, k};\n  data[i] *= 2;\n}\n' \
               'iket::mark("twice"_ev);\niket::mark("twice"_ev, n);'
        first = HEAD.count("\n") + 1
        for options, expected in (["-lineinfo"], {"here": first, "tile": first + 2, "twice": 0}), \
                ([], {"here": 0, "tile": 0, "twice": 0}):
            with self.subTest(options), tempfile.TemporaryDirectory() as folder:
                cubin = self.compile(folder, code, "20", "-DIKET_ENABLE", *options)
                done = subprocess.run([os.environ["IKET"], "report", "--json", self.profile(folder, cubin, ".iketcap")],
                                      stdout=subprocess.PIPE, check=True, timeout=120)
                report = json.loads(done.stdout)
                rows = report["ranges"] + report["marks"]
                self.assertEqual({row["name"]: row["source_line"] for row in rows}, expected)
                for row in rows:
                    self.assertEqual(row["source_file"].endswith("/snippet.cu"), row["source_line"] != 0, row)

    def test_snippets(self):
        count = 0
        for title, standard, code, text in snippets():
            count += 1
            with self.subTest(title), tempfile.TemporaryDirectory() as folder:
                self.compile(folder, code, standard)
                cubin = self.compile(folder, code, standard, "-DIKET_ENABLE")
                with open(self.profile(folder, cubin, ".pftrace"), "rb") as file:
                    self.assertEqual(story(replay.Replay(file.read())), text)
        self.assertGreater(count, 5)


if __name__ == "__main__":
    unittest.main()
