"""The scripts without their frameworks: what they compile has its marks, and makes the events that they state;
what iket_triton.py emits is the placeholder that iket.cuh emits. On the software device."""

import ctypes
import importlib
import json
import os
import shlex
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

import cupy_embed
import cupy_raw
import jax_ffi
import marked
import multiprocess
import ranks
import torch_extension
import torch_graph
import torch_profiler
import triton_marks

# Of jaxlib's header what the kernel needs to be compiled for the device.
FFI_HEADER = """
#include <cstddef>
namespace xla::ffi {
struct Error {
  static Error Success() { return {}; }
  static Error Internal(const char*) { return {}; }
};
enum Type { S32 };
template <Type> struct Buffer {
  std::size_t element_count() const { return 0; }
  int* typed_data() const { return nullptr; }
};
template <Type type> struct ResultBuffer {
  const Buffer<type>* operator->() const { return nullptr; }
};
}
#define XLA_FFI_DEFINE_HANDLER_SYMBOL(...)
"""

# What Triton's PTX is around inline assembly; the parameters are those of marked.SOURCE.
PTX = """
.version 8.7
.target sm_90a
.address_size 64
.visible .entry Run(.param .u64 out, .param .u32 n)
{
	.reg .pred %p<2>;
	.reg .b32 %r<4>;
	mov.b32 %r1, 0;
	ld.param.b32 %r2, [n];
$L__BB0_1:
	// begin inline asm
	BEGIN
	// end inline asm
	// begin inline asm
	END
	// end inline asm
	add.s32 %r1, %r1, 1;
	setp.ne.b32 %p1, %r1, %r2;
	@%p1 bra $L__BB0_1;
	// begin inline asm
	MARK
	// end inline asm
	ret;
}
"""


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, text=True,
                          timeout=120)
    if done.returncode != 0:
        raise AssertionError(f"{shlex.join(command)} ends with {done.returncode}: {done.stdout}{done.stderr}")
    return done


def iket_triton():
    """The module, with as much of Triton as it needs to be read."""
    triton, language = types.ModuleType("triton"), types.ModuleType("triton.language")
    triton.jit = triton.constexpr_function = lambda function: function
    language.constexpr = lambda value: value
    triton.language = language
    with mock.patch.dict(sys.modules, {"triton": triton, "triton.language": language}):
        return importlib.import_module("iket_triton")


class Frameworks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def cubin(self, source, *flags, arch="sm_90"):
        output = f"{source}.cubin"
        run(os.environ["NVCC"], f"-arch={arch}", "-cubin", *flags, "-o", output, source)
        return output

    def image(self, cubin):
        (image,) = json.loads(run(os.environ["IKET"], "info", "--json", cubin).stdout)["images"]
        (kernel,) = image["functions"]
        self.assertEqual(kernel["refusal"], "")
        return image["declarations"], kernel

    def events_of(self, cubin):
        done = run(os.environ["IKET"], "profile", "--device", "sim", "--json", "--export", "none", "-o",
                   os.path.join(self.folder, "out"), "--", sys.executable, __file__, "guest", cubin)
        summary = json.loads(done.stderr.splitlines()[-1])
        self.assertEqual((summary["records_lost"], summary["refused"]), (0, []))
        return summary["events_kept"], done.stdout

    def test_numbers_of_the_table(self):
        replays = 1 + torch_graph.REPLAYS * torch_graph.NODES
        made = {"torch_extension.py": (torch_extension.LAUNCHES, torch_extension.EVENTS),
                "torch_graph.py": (replays, torch_extension.EVENTS),
                "torch_profiler.py": (1 + torch_profiler.ROUNDS, torch_extension.EVENTS),
                "triton_marks.py": (triton_marks.LAUNCHES, triton_marks.EVENTS),
                "jax_ffi.py": (jax_ffi.CALLS * jax_ffi.CALLS_OF_FUNCTION, jax_ffi.EVENTS),
                "cupy_raw.py": (cupy_raw.STREAMS * cupy_raw.LAUNCHES, marked.EVENTS),
                "cupy_embed.py": (cupy_embed.LAUNCHES, marked.EVENTS),
                "multiprocess.py": (2 * multiprocess.CHILDREN * multiprocess.LAUNCHES, marked.EVENTS),
                "ranks.sh": (2 * ranks.LAUNCHES, torch_extension.EVENTS)}
        with open(os.path.join(os.path.dirname(os.path.realpath(__file__)), "README.md"), encoding="utf-8") as file:
            rows = [[cell.strip(" `\n") for cell in line.split("|")] for line in file if line.startswith("| `")]
        said = {row[1]: (int(row[4]), int(row[5].replace(",", ""))) for row in rows}
        self.assertEqual(said, {name: (launches, launches * events) for name, (launches, events) in made.items()})

    def test_source_for_nvrtc(self):
        cubin = self.cubin(self.write("run.cu", marked.SOURCE), *marked.nvrtc_options())
        declarations, kernel = self.image(cubin)
        self.assertEqual({mark["name"] for mark in declarations}, {"round", "done"})
        self.assertGreaterEqual(len(kernel["sites"]), 3)
        self.assertEqual(self.events_of(cubin), (marked.EVENTS, f"{marked.expected_sum()}\n"))

    def test_jax_source(self):
        self.write("xla/ffi/api/ffi.h", FFI_HEADER)
        source, output = self.write("mix.cu", jax_ffi.SOURCE), os.path.join(self.folder, "mix.cubin")
        command = jax_ffi.compile_command(os.environ["NVCC"], self.folder, "sm_90", source, output)
        run(*[word for word in command if word != "-shared"], "-cubin")
        declarations, kernel = self.image(output)
        self.assertEqual({mark["name"] for mark in declarations}, {"load", "mix", "store"})
        # The loop is unrolled, so that each site is passed once.
        self.assertEqual(len(kernel["sites"]) * jax_ffi.BLOCKS * jax_ffi.THREADS // 32, jax_ffi.EVENTS)

    def test_triton_emits_what_the_header_emits(self):
        placeholder = iket_triton().placeholder
        text = PTX
        for word, event in (("BEGIN", (3, 5, "round")), ("END", (4, 0, "round")), ("MARK", (0, 0, "done"))):
            text = text.replace(word, placeholder(*event).replace("$0", "%r3").replace("$1", "%r1"))
        cubin = self.cubin(self.write("triton.ptx", text), arch="sm_90a")
        declarations, kernel = self.image(cubin)
        self.assertEqual(len(kernel["sites"]), 3)
        self.assertEqual(self.events_of(cubin)[0], marked.EVENTS)

        source = marked.SOURCE.replace("k}", "static_cast<int>(k)}")
        wanted, _ = self.image(self.cubin(self.write("header.cu", source), *marked.nvrtc_options()))

        def known(all_of_them):
            return sorted(json.dumps(one, sort_keys=True) for one in all_of_them)

        self.assertEqual(known(declarations), known(wanted))

    def test_names_are_any_text(self):
        placeholder = iket_triton().placeholder
        names = ['say "hi"', "100 % {of} $0", "Grüße"]
        body = "\n".join(placeholder(0, 0, name).replace("mov.u32 $0", "mov.u32 %r3") for name in names)
        text = PTX.replace("BEGIN", body).replace("END", "").replace("MARK", "")
        declarations, _ = self.image(self.cubin(self.write("names.ptx", text), arch="sm_90a"))
        self.assertEqual({mark["name"] for mark in declarations}, set(names))


def guest(cubin):
    """A launch of Run through the driver API; prints the sum of what it wrote."""
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
    call("cuModuleGetFunction", ctypes.byref(kernel), module, b"Run")
    words = (ctypes.c_uint32 * (marked.BLOCKS * marked.THREADS))()
    out, size = ctypes.c_uint64(), ctypes.c_size_t(ctypes.sizeof(words))
    call("cuMemAlloc_v2", ctypes.byref(out), size)
    call("cuMemcpyHtoD_v2", out, words, size)
    count = ctypes.c_uint32(marked.ROUNDS)
    arguments = (ctypes.c_void_p * 2)(ctypes.addressof(out), ctypes.addressof(count))
    call("cuLaunchKernel", kernel, marked.BLOCKS, 1, 1, marked.THREADS, 1, 1, 0, None, arguments, None)
    call("cuCtxSynchronize")
    call("cuMemcpyDtoH_v2", words, out, size)
    print(sum(words))


if __name__ == "__main__":
    if sys.argv[1:2] == ["guest"]:
        guest(sys.argv[2])
    else:
        unittest.main()
