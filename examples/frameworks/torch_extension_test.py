"""The extension without PyTorch: its source compiles with what `iket config` says and has its marks, and its
kernel, on the software device, computes an RMS norm and makes the events that the example states."""

import array
import ctypes
import json
import os
import shlex
import subprocess
import sys
import tempfile
import unittest

import marked
import torch_extension as example

HERE = os.path.dirname(os.path.realpath(__file__))


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, text=True,
                          timeout=120)
    if done.returncode != 0:
        raise AssertionError(f"{shlex.join(command)} ends with {done.returncode}: {done.stdout}{done.stderr}")
    return done


class TorchExtension(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.iket = os.environ["IKET"]

    def compile(self, cflags):
        source, cubin = (os.path.join(self.folder, name) for name in ("cuda.cu", "cuda.cubin"))
        with open(source, "w", encoding="utf-8") as file:
            file.write(example.SOURCE)
        # By a shell, as ninja does it.
        run("sh", "-c", f"{shlex.quote(os.environ['NVCC'])} -O3 -std=c++20 -arch=sm_90 {cflags} -cubin "
                        f"-o {shlex.quote(cubin)} {shlex.quote(source)}")
        return cubin

    def test_marks(self):
        (image,) = json.loads(run(self.iket, "info", "--json",
                                  self.compile(marked.iket_cflags())).stdout)["images"]
        self.assertEqual({mark["name"] for mark in image["declarations"]}, {"squares", "wait", "scale"})
        (kernel,) = image["functions"]
        self.assertEqual((kernel["name"], kernel["refusal"]), ("RmsNorm", ""))
        self.assertEqual(len(kernel["sites"]), example.EVENTS_PER_WARP)

    def test_result_and_events(self):
        cubin = self.compile(marked.iket_cflags())
        done = run(self.iket, "profile", "--device", "sim", "--json", "--export", "none", "-o",
                   os.path.join(self.folder, "out"), "--", sys.executable, __file__, "guest", cubin)
        self.assertEqual(done.stdout, "ok\n")
        summary = json.loads(done.stderr.splitlines()[-1])
        warps = GUEST_ROWS * example.THREADS // 32
        self.assertEqual(summary["events_kept"], warps * example.EVENTS_PER_WARP)
        self.assertEqual((summary["records_lost"], summary["refused"]), (0, []))

    def test_the_guest_of_the_matrix_has_its_events(self):
        events = example.LAUNCHES * example.EVENTS
        with open(os.path.join(HERE, "../../tests/guest/programs.txt"), encoding="utf-8") as rows:
            (row,) = [line.split("|") for line in rows if line.startswith("torch_load_inline ")]
        self.assertEqual(int(row[2]), events)

    def test_without_iket_it_says_what_to_do(self):
        os.environ["IKET"] = os.path.join(self.folder, "iket")
        self.addCleanup(os.environ.__setitem__, "IKET", self.iket)
        with self.assertRaisesRegex(SystemExit, "put iket's bin folder on PATH, or set IKET"):
            marked.iket_cflags()


GUEST_ROWS, GUEST_COLUMNS = 4, 1024


def guest(cubin):
    """A few rows through the driver API."""
    driver = ctypes.CDLL("libcuda.so.1")

    def call(name, *arguments):
        result = getattr(driver, name)(*arguments)
        if result != 0:
            sys.exit(f"{name}: {result}")

    context, module, kernel = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxSetCurrent", context)
    with open(cubin, "rb") as file:
        call("cuModuleLoadData", ctypes.byref(module), file.read())
    call("cuModuleGetFunction", ctypes.byref(kernel), module, b"RmsNorm")

    count = GUEST_ROWS * GUEST_COLUMNS
    x = array.array("f", ((i * 37 % 101 - 50) / 16 for i in range(count)))
    weight = array.array("f", ((i % 7 + 1) / 4 for i in range(GUEST_COLUMNS)))
    y = array.array("f", bytes(4 * count))
    places = []
    for values in (x, weight, y):
        place, size = ctypes.c_uint64(), ctypes.c_size_t(4 * len(values))
        call("cuMemAlloc_v2", ctypes.byref(place), size)
        call("cuMemcpyHtoD_v2", place, values.tobytes(), size)
        places.append(place)
    epsilon = example.EPSILON
    arguments = [*places, ctypes.c_int(GUEST_COLUMNS), ctypes.c_float(epsilon)]
    pointers = (ctypes.c_void_p * 5)(*(ctypes.addressof(argument) for argument in arguments))
    call("cuLaunchKernel", kernel, GUEST_ROWS, 1, 1, example.THREADS, 1, 1, 0, None, pointers, None)
    call("cuCtxSynchronize")
    out = ctypes.create_string_buffer(4 * count)
    call("cuMemcpyDtoH_v2", out, places[2], ctypes.c_size_t(4 * count))
    y = array.array("f", out.raw)
    for row in range(GUEST_ROWS):
        values = x[row * GUEST_COLUMNS:(row + 1) * GUEST_COLUMNS]
        factor = (sum(value * value for value in values) / GUEST_COLUMNS + epsilon) ** -0.5
        for i, value in enumerate(values):
            wanted = value * factor * weight[i]
            if abs(y[row * GUEST_COLUMNS + i] - wanted) > 1e-5 * abs(wanted) + 1e-6:
                sys.exit(f"row {row}, column {i}: {y[row * GUEST_COLUMNS + i]}, not {wanted}")
    print("ok")


if __name__ == "__main__":
    if sys.argv[1:2] == ["guest"]:
        guest(sys.argv[2])
    else:
        unittest.main()
