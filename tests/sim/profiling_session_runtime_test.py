"""A program of the CUDA runtime that profiles itself (tests/session/self_profile_runtime.cu): on a GPU alone."""

import json
import os
import subprocess
import tempfile
import unittest

PROGRAM, LIBRARY = (os.environ[name] for name in ("IKET_SIM_SELF_PROFILE", "IKET_SESSION_LIBRARY"))
RUNTIME = os.path.join(os.path.dirname(PROGRAM), "self_profile_runtime")


class ProfilingSessionRuntime(unittest.TestCase):
    def test_launches_and_graphs_of_the_session(self):
        libraries = ":".join([os.path.dirname(LIBRARY), os.environ.get("LD_LIBRARY_PATH", "")]).rstrip(":")
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([RUNTIME, "a.json"], env={**os.environ, "LD_LIBRARY_PATH": libraries}, cwd=folder,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False, text=True)
            self.assertEqual((done.stdout, done.stderr), ("done, ok\n", ""))
            with open(os.path.join(folder, "a.json"), encoding="utf-8") as file:
                trace = json.load(file)
        launches = trace["launches"] + [launch for replay in trace["graphLaunches"].values() for launch in replay]
        self.assertEqual((len(trace["launches"]), len(launches)), (3, 5))
        for launch in launches:
            self.assertEqual([len(launch[key]) for key in ("warpLifetimes", "ranges", "markers")], [8, 8, 24])
            self.assertEqual([mark["payloadVal"] for mark in launch["markers"]], [0, 1, 2] * 8)


if __name__ == "__main__":
    unittest.main()
