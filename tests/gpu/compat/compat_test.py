"""tools/gpu/compat.sh with collectors that are scripts: what it says of them, and when it fails."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from gemm_marks_test import EXAMPLE  # noqa: E402

SOURCE = os.environ.get("IKET_SOURCE_DIR", os.path.join(HERE, "../../.."))
TRACE = os.path.join(SOURCE, "tests/data/run-iket/ranges/trace.json")

# Runs the program and leaves $TRACE of its side; `postprocess` lasts $POSTPROCESS seconds.
COLLECTOR = """#!/bin/bash
out=. what=none
while (($#)); do
  case $1 in
    -o | --output-dir) out=$2; shift ;;
    --postprocess) what=$2; shift ;;
    postprocess) sleep "${POSTPROCESS:-0}"; exec cp "$SIDE" "${!#}/iket.trace.json" ;;
    --) shift; break ;;
  esac
  shift
done
SIDE=${SIDE:?} ; mkdir -p "$out"
"$@" || exit
[[ $what == none ]] || cp "$SIDE" "$out/iket_pid_0x1.trace.json"
"""
IKET = """#!/bin/bash
case $1 in
  export) cp "$OURS" "$5"; exit ;;
  profile) ;;
  *) echo "iket $*"; exit ;;
esac
out=$3
while [[ $1 != -- ]]; do shift; done
shift; mkdir -p "$out"; touch "$out/1.iketcap"
"$@"
"""
# As TileLang's is.
PROFILE_COMMAND = """import shlex
def profile_command(command, directory, postprocess):
    return shlex.join(["python", "-m", "iket.cli.main", "--output-dir", directory, "profile", "--postprocess", postprocess,
                       "--", *command])
"""
PROGRAMS = {
    "zoo.py": "print('zoo')",
    "tilelang_zoo.py": "print('tilelang')",
    "gemm.py": "print('gemm clean 10 9 11 2'); print('gemm marked 11 10 12 2')",
    "event_cost.py": "for kind in ('clean', 'mark', 'payload', 'range'): print('event', kind, 8, 256)",
}


class CompatTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        programs = self.path("tree/bin/tests/compat")
        for path in (programs, self.path("wheels/bin"), self.path("carried"), self.path("tree/lib/iket/python/shim/iket/cli")):
            os.makedirs(path)
        for script in ("compare_traces.py", "tables.py", "gemm_marks.py"):
            shutil.copy(os.path.join(HERE, script), programs)
        for name, text in PROGRAMS.items():
            self.write(f"tree/bin/tests/compat/{name}", text + "\n")
        for name in ("minimal", "payload_minimal", "all_features"):
            self.write(f"carried/{name}.py", "")
        self.write("carried/dense_gemm_persistent.py", EXAMPLE)
        self.write("wheels/bin/run-iket", COLLECTOR.replace("SIDE", "THEIRS"))
        self.write("tree/bin/run-iket", COLLECTOR.replace("SIDE", "OURS"))
        self.write("tree/bin/iket", IKET)
        os.makedirs(self.path("wheels/tilelang/tools/cuda"))
        self.write("wheels/tilelang/tools/cuda/iket.py", PROFILE_COMMAND)
        shim = "import os, subprocess, sys\nsys.exit(subprocess.call([os.environ['RUN_IKET'], *sys.argv[1:]]))\n"
        for name, text in (("__init__", ""), ("cli/__init__", ""), ("cli/main", shim)):
            self.write(f"tree/lib/iket/python/shim/iket/{name}.py", text)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.path(name), 0o755)

    def compat(self, *steps, **environment):
        variables = {**os.environ, "IKET_TREE": self.path("tree"), "WHEELS": self.path("wheels"), "OURS": TRACE, "THEIRS": TRACE,
                     "CARRIED": self.path("carried"), "ROUNDS": "1", "RUN_IKET": self.path("tree/bin/run-iket"), **environment}
        done = subprocess.run([os.path.join(SOURCE, "tools/gpu/compat.sh"), self.path("out"), *steps], check=False,
                              env=variables, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=100)
        summary = ""
        if os.path.exists(self.path("out/summary.txt")):
            with open(self.path("out/summary.txt"), encoding="utf-8") as file:
                summary = file.read()
        return done.returncode, summary + done.stderr

    def other_trace(self):
        with open(TRACE, encoding="utf-8") as file:
            trace = json.load(file)
        trace["launches"][0]["markers"].pop()
        self.write("other.trace.json", json.dumps(trace))
        return self.path("other.trace.json")

    def test_equal_collectors(self):
        code, out = self.compat("cost", "gemm", "json", "zoo", "tilelang")
        self.assertEqual(code, 0, out)
        for row in ("| one mark, 8 | 256.0 | +0.0 | +0.0 | +0.0 |", "| iket | 10.00 | 11.00 | +10.00 % | +10.00 % |",
                    "times faster", "| CuTe DSL zoo: types, ranges, 40 names | 1 | 16 | 132 | 12 | 88 | 0 ns | 0 ns | same |",
                    "| TileLang zoo, with payloads | 1 | 16 |", "examples/iket/all_features.py", "all steps done"):
            self.assertIn(row, out)
        self.assertNotIn("FAILED", out)
        self.assertTrue(os.path.exists(self.path("out/results.tar.gz")))

    def test_programs_of_the_tree(self):
        for folder in ("sim", "../../lib/iket-session", "../path"):
            os.makedirs(self.path("tree/bin/tests", folder))
        for name in ("official", "official_extended", "cub", "cub_official"):
            self.write(f"tree/bin/tests/{name}", "#!/bin/sh\n")
        for name in ("official_check.py", "cub_check.py"):
            self.write(f"tree/bin/tests/{name}", "import sys\nopen(sys.argv[1])\nprint('as marked', *sys.argv[2:])\n")
        self.write("tree/lib/iket-session/libiket_injection.so", "")
        self.write("tree/bin/path/cuobjdump", "#!/bin/sh\ntouch official.1.sm_90.cubin\n")
        program = """#!/bin/sh
test -f "$1" || exit 9
case $LD_LIBRARY_PATH in *iket-session) side=$OURS ;; *) side=$THEIRS ;; esac
for word; do case $word in save=*) cp "$side" "${word#save=}" ;; create | start) echo "$word ${CODE:-0}" ;; esac; done
"""
        self.write("tree/bin/tests/sim/sim_self_profile", program)
        path = self.path("tree/bin/path") + ":" + os.environ["PATH"]
        code, out = self.compat("official", "cub", "session", PATH=path)
        self.assertEqual(code, 0, out)
        for line in ("as marked --extended\n", "| IketProfilingSession, C, 9 launches | 1 | 16 |",
                     "   theirs: create 0;start 0;", "-- check-cub-ours: done", "-- check-cub_official-theirs: done"):
            self.assertIn(line, out)
        code, out = self.compat("official", "session", PATH=path, THEIRS=self.other_trace())
        self.assertEqual(code, 1, out)
        self.assertIn("FAILED: compare-official compare-official_extended compare-session", out)
        self.write("tree/bin/tests/sim/sim_self_profile", program.replace("${CODE:-0}", "$LD_LIBRARY_PATH"))
        code, out = self.compat("session", PATH=path)
        self.assertEqual(code, 1, out)
        self.assertIn("FAILED: session-codes", out)

    def test_a_difference_fails(self):
        code, out = self.compat("zoo", OURS=self.other_trace())
        self.assertEqual(code, 1, out)
        self.assertIn("**1 differences**", out)
        self.assertIn("difference (marker): ", out)
        self.assertIn("FAILED: compare-zoo compare-zoo-cluster compare-zoo-warps", out)

    def test_a_collector_that_fails(self):
        for side in ("tree", "wheels"):
            self.write("gone", "#!/bin/sh\necho broken >&2\nexit 3\n")
            os.replace(self.path("gone"), self.path(side, "bin/run-iket"))
            code, out = self.compat("zoo")
            self.assertEqual(code, 1, out)
            self.assertIn("| CuTe DSL zoo: types, ranges, 40 names | | | | | | | | **not compared** |", out)
            self.assertIn("broken", out)

    def test_run_iket_is_not_ready_in_time(self):
        code, out = self.compat("json", POSTPROCESS="30", JSON_SECONDS="1")
        self.assertEqual(code, 0, out)
        self.assertIn("| run-iket postprocess --format json | not done after 1 | |", out)
        self.assertIn("**more than ", out)

    def test_no_time(self):
        code, out = self.compat("cost", "zoo", SECONDS_LEFT="0")
        self.assertEqual(code, 1, out)
        self.assertIn("no time left", out)
        self.assertNotIn("same |", out)

    def test_what_is_not_there(self):
        os.remove(self.path("carried/dense_gemm_persistent.py"))
        code, out = self.compat("gemm", "official", "cub", "session")
        self.assertEqual(code, 1, out)
        for name in ("gemm", "official", "cub", "session"):
            self.assertIn(f"-- {name}: not run, there is no ", out)

    def test_wrong_use(self):
        self.assertEqual(self.compat("nonsense")[0], 2)
        os.remove(self.path("wheels/bin/run-iket"))
        code, out = self.compat("zoo")
        self.assertEqual(code, 2)
        self.assertIn("wheels/bin/run-iket", out)


if __name__ == "__main__":
    unittest.main()
