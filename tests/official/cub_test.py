"""What the compiler makes of CUB's own annotations: nothing where they are off, ranges of CUB's names where they are on.

Environment: IKET, IKET_NVCC, IKET_NVDISASM, IKET_INCLUDE, IKET_CCCL (headers of CUB); IKET_HELLO for MacrosTest.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "codegen")]
import cub_check  # noqa: E402
import official_test  # noqa: E402
from cubin import Cubin  # noqa: E402

SOURCE = """#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <cuda/std/functional>
cudaError_t Scan(void* storage, size_t& bytes, const int* in, int* out, int n) {
  return cub::DeviceScan::InclusiveSum(storage, bytes, in, out, n);
}
cudaError_t ByKey(void* storage, size_t& bytes, const int* keys, int* unique, const int* in, int* out, int* count, int n) {
  return cub::DeviceReduce::ReduceByKey(storage, bytes, keys, unique, in, out, count, cuda::std::plus<>{}, n);
}
"""
SQUADS = {"SquadReduce", "SquadScanStore", "SquadLoad", "SquadSched", "SquadLookahead"}  # of sm_100 and later
ON = ("-D_CCCL_ENABLE_IKET", "-DIKET_ENABLE")


class CodeTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.source = os.path.join(self.folder, "algorithms.cu")
        with open(self.source, "w", encoding="utf-8") as file:
            file.write(SOURCE)

    def compile(self, *options, arch="sm_90"):
        path = os.path.join(self.folder, "out.cubin")
        done = subprocess.run([os.environ["IKET_NVCC"], "-arch=" + arch, "-std=c++17", "-I" + os.environ["IKET_CCCL"],
                               "-I" + os.environ["IKET_INCLUDE"], "--Werror=all-warnings", "-cubin", *options, "-o", path, self.source],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        return path

    def info(self, path):
        done = subprocess.run([os.environ["IKET"], "info", "--sites", "--json", path], check=True, timeout=120,
                              stdout=subprocess.PIPE)
        image, = json.loads(done.stdout)["images"]
        self.assertEqual((image["problem"], image["problems"]), ("", []))
        return image

    def test_off_is_free(self):
        """Without IKET_ENABLE CUB's kernels are those that they are without the header."""
        with open(self.compile(), "rb") as file:
            none = Cubin(file.read())
        with open(self.compile("-D_CCCL_ENABLE_IKET"), "rb") as file:
            off = Cubin(file.read())
        self.assertEqual(off.code, none.code)
        self.assertEqual(off.registers, none.registers)
        self.assertEqual(off.declarations, set())

    def test_ranges_are_found(self):
        """Each site of both algorithms would be recorded."""
        image = self.info(self.compile(*ON))
        name_of = {row["id"]: row["name"] for row in image["declarations"]}
        self.assertEqual({row["kind"] for row in image["declarations"]}, {"push", "pop"})
        for kernel, expected in cub_check.LOOKBACK.items():
            function, = (row for row in image["functions"] if kernel in row["name"])
            self.assertEqual(function["refusal"], "")
            names = {name_of.get(site["event"], "") for site in function["sites"]}
            self.assertLessEqual(set(expected) | (set(cub_check.TILES) if "Scan" in kernel else set()), names)
        self.assertEqual({row["refusal"] for row in image["functions"]}, {""})

    def test_start_and_end(self):
        """From sm_100 on a scan is made by squads of warps, whose ranges have rows of their own."""
        image = self.info(self.compile(*ON, arch="sm_100"))
        kinds = {(row["name"], row["kind"]) for row in image["declarations"]}
        self.assertEqual({name for name, kind in kinds if kind == "range begin"}, SQUADS)
        self.assertEqual({name for name, kind in kinds if kind == "range end"}, SQUADS)
        lanes = {row["name"]: row["lane"] for row in image["declarations"] if row["kind"].startswith("range")}
        self.assertEqual(lanes, {name: name for name in SQUADS})

    def test_official(self):
        """The same for NVIDIA's collector, in its 30 names."""
        checker = official_test.OfficialTest()
        for arch in ("sm_90", "sm_100", "sm_120"):
            with self.subTest(arch):
                path = self.compile(*ON, "-DIKET_COMPAT=official", arch=arch)
                with open(path, "rb") as file:
                    metadata = official_test.Metadata(Cubin(file.read()))
                self.assertEqual(metadata.method, official_test.NATIVE)
                found = [number for _, words in checker.functions(path) for number in checker.sites(words, metadata)]
                names = {metadata.events[number][0] for number in found if number != official_test.POP}
                self.assertLessEqual(set(cub_check.LOOKBACK["DeviceReduceByKeyKernel"]), names)
                tokens = {name for name, position, _ in metadata.events.values() if position == official_test.TOKEN}
                self.assertEqual(tokens, SQUADS if arch == "sm_100" else set())
                self.assertEqual({name for name, kind, _ in metadata.ranges if kind == official_test.START_END}, tokens)
                if arch == "sm_90":  # and ours, although no register of these kernels is spare
                    self.assertEqual({row["refusal"] for row in self.info(path)["functions"]}, {""})

    def test_wrong_use(self):
        """A name that is not declared, or otherwise, ends the build."""
        for body, sentence in (("IKET_RANGE_PUSH(Other);", "iket_push_pop_Other"),
                               ("IKET_RANGE_START(Plain);", "iket_start_end_Plain"),
                               ("IKET_RANGE_PUSH_EX(Plain, 1);", "iket: this name has no value: declare it with the _EX form"),
                               ("IKET_RANGE_PUSH(Valued);", "iket: this name is declared with a value: use the _EX form"),
                               ("CREATE_IKET_START_END_RANGE_EX(Both, int, iket::IketEventPairMode::kNameAndPayload); IKET_RANGE_START_EX(Both, 1);",
                                "iket: ranges are told apart by name alone")):
            for options in ([], ["-DIKET_ENABLE"]):
                with self.subTest(body, options=options):
                    with open(self.source, "w", encoding="utf-8") as file:
                        file.write("#include <iket/iket_device_apis.cuh>\nCREATE_IKET_PUSH_POP_RANGE(Plain);\n"
                                   f"CREATE_IKET_PUSH_POP_RANGE_EX(Valued, int);\n__global__ void Use() {{ {body} }}\n")
                    done = subprocess.run([os.environ["IKET_NVCC"], "-arch=sm_90", "-std=c++17", "-I" + os.environ["IKET_INCLUDE"],
                                           "-cubin", *options, "-o", os.devnull, self.source],
                                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
                    self.assertNotEqual(done.returncode, 0)
                    self.assertIn(sentence, done.stdout)

    def test_switch_of_the_other_header(self):
        """IKET_BUILD_ENABLED is IKET_ENABLE, and 0 is off."""
        for value, expected in (("", True), ("=0", False)):
            with open(self.source, "w", encoding="utf-8") as file:
                file.write("#include <iket/iket_device_apis.cuh>\nCREATE_IKET_MARKER(Plain);\n__global__ void Use() { IKET_MARKER(Plain); }\n")
            with open(self.compile("-DIKET_BUILD_ENABLED" + value), "rb") as file:
                self.assertEqual(bool(Cubin(file.read()).declarations), expected)
        done = subprocess.run([os.environ["IKET_NVCC"], "-arch=sm_90", "-std=c++17", "-I" + os.environ["IKET_INCLUDE"], "-include",
                               "iket/iket.cuh", "-DIKET_BUILD_ENABLED", "-cubin", "-o", os.devnull, self.source],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
        self.assertRegex(done.stdout, re.escape("iket: iket.cuh was included without marks: build with -DIKET_ENABLE"))


class MacrosTest(unittest.TestCase):
    """The kernel Macros of cub.cu on the software device."""

    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            cubin, output = os.path.join(folder, "cub.cubin"), os.path.join(folder, "out")
            include = os.environ["IKET_INCLUDE"]
            subprocess.run([os.environ["IKET_NVCC"], "-std=c++20", "-arch=sm_90", *ON, "-I" + os.environ["IKET_CCCL"],
                            "-I" + include, "-I" + os.path.join(include, "..", "examples"), "-cubin", "-o", cubin,
                            os.path.join(HERE, "cub.cu")], check=True, timeout=600)
            subprocess.run([os.environ["IKET"], "profile", "--device", "sim", "--export", "trace.json", "-o", output, "--",
                            os.environ["IKET_HELLO"], cubin, "Macros", str(cub_check.STEPS)],
                           check=True, timeout=120, stdout=subprocess.DEVNULL)
            name, = (name for name in os.listdir(output) if name.endswith(".trace.json"))
            with open(os.path.join(output, name), encoding="utf-8") as file:
                cls.text = file.read()

    def differences(self, trace):
        """Those of Macros; CUB's kernels did not run."""
        found = list(cub_check.differences(trace))
        self.assertTrue(any(line.startswith("DeviceScanKernel: no range Lookback") for line in found), found)
        return [line for line in found if line.startswith("Macros")]

    def test_ranges_that_do_not_nest(self):
        self.assertEqual(self.differences(json.loads(self.text)), [])

    def test_another_value(self):
        trace = json.loads(self.text)
        rows = [row for row in trace["launches"][0]["ranges"] if trace["stringTable"][row["rangeNameIdx"]] == "Wait"]
        rows[0]["internalEvents"][1]["payloadVal"] += 1
        self.assertEqual(len(self.differences(trace)), 1)

    def test_what_is_missing(self):
        trace = json.loads(self.text)
        launch = trace["launches"][0]
        launch["ranges"] = [row for row in launch["ranges"] if trace["stringTable"][row["rangeNameIdx"]] != "Step"]
        self.assertEqual(len(self.differences(trace)), 1)
        launch["markers"].pop()
        self.assertEqual(len(self.differences(trace)), 2)


if __name__ == "__main__":
    unittest.main()
