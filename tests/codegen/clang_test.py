"""The same of Clang's CUDA mode as codegen_test.py of nvcc, whose tests these are, and what is Clang's alone.

Environment: that of codegen_test.py; IKET_CLANG, a compiler and the options without which it compiles nothing here,
with | between them; IKET_CUDA_ROOT.
"""
import os
import re
import subprocess
import unittest

import codegen_test
from codegen_test import ARCH, HERE, INCLUDE
from cubin import Cubin

LONG = "long " * 400


class Clang:
    """Before a test's own class: it compiles with Clang."""

    def clang(self, source, output, *options):
        """Calls the compiler for one side, with the options of nvcc that these tests use."""
        arch = next((option[6:] for option in options if option.startswith("-arch=")), ARCH)
        theirs = {"-rdc=true": "-fgpu-rdc", "-lineinfo": "-gline-tables-only", "-Xcompiler=-Wall,-Wextra": "-Wall"}
        options = [theirs.get(option, option) for option in options if not option.startswith("-arch=")]
        if "--cuda-host-only" not in options:
            options.append("--cuda-device-only")
        if "-S" not in options:
            options.append("-c")
        return subprocess.run([*os.environ["IKET_CLANG"].split("|"), "-x", "cuda", "--cuda-gpu-arch=" + arch, "-O3",
                               "-I" + INCLUDE, "-Wall", "-Wextra", *options, "-o", output, source],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)

    def compile(self, source, *options):
        path = os.path.join(self.folder, "out.cubin")
        done = self.clang(os.path.join(HERE, source), path, "-Werror", *options)
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        return path

    def forms(self, *options):
        """Declarations without the zeros that fill their last word."""
        cubin = super().forms(*options)
        self.assertNotIn(".nv.constant3", cubin.bodies)  # the program's, of 64 KiB

        def number(row, at):
            return int.from_bytes(row[at:at + 4], "little")

        # Header, name, NUL; and attributes where the header says their size.
        whole = {row[:row[4] + number(row, 12) + 1 + (number(row, 16) if row[4] == 20 else 0)]
                 for row in cubin.declarations}
        self.assertEqual({row + bytes(-len(row) % 8) for row in whole}, cubin.declarations)
        cubin.declarations = whole
        return cubin

    def build(self, body, *options, function="__global__"):
        path = os.path.join(self.folder, "use.cu")
        with open(path, "w", encoding="utf-8") as file:
            file.write("#include <iket/iket.cuh>\nusing namespace iket::literals;\n"
                       f"{function} void Use() {{ {body} }}\n")
        for side in ("--cuda-host-only", "--cuda-device-only"):
            done = self.clang(path, os.devnull, "-DIKET_ENABLE", side, *options)
            if done.returncode or done.stdout:
                break
        return done


class OffTest(Clang, codegen_test.OffTest):
    test_debug_builds_leave_marks_out = None  # Clang says nowhere that it is one


class OnTest(Clang, codegen_test.OnTest):
    pass


class WrongUseTest(Clang, codegen_test.WrongUseTest):
    def test_older_standard(self):
        """Clang goes on behind the first error, which says it."""
        done = self.build('IKET_MARK("a");', "-std=c++14")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("iket: marks need C++17: build with -std=c++17 or later", re.search("error:.*", done.stdout)[0])


class InfoTest(Clang, codegen_test.InfoTest):
    test_placeholder_by_hand = None  # of ptxas alone
    test_places = None  # Clang's line tables leave out who inlined what

    def written(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write("#include <iket/iket.cuh>\nusing namespace iket::literals;\n" + text)
        return path

    def names(self, path):
        """Those of all sites, by function; empty where the id was put into its register before the mark's block."""
        image = self.info(path)
        self.assertEqual({row["refusal"] for row in image["functions"]}, {""})
        name_of = {row["id"]: row["name"] for row in image["declarations"]}
        return {row["name"]: [name_of.get(site["event"], "") for site in row["sites"]] for row in image["functions"]}

    def test_architectures(self):
        """Of those that Clang does not know, ptxas makes code of what it wrote for the last that it knows."""
        for arch in ("sm_80", "sm_86", "sm_89", "sm_90a"):
            with self.subTest(arch):
                self.check_forms("-arch=" + arch)
        text = os.path.join(self.folder, "forms.ptx")
        done = self.clang(os.path.join(HERE, "forms.cu"), text, "-std=c++20", "-DIKET_ENABLE", "-S")
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        for arch in ("sm_100", "sm_120a"):
            with self.subTest(arch):
                path = os.path.join(self.folder, arch + ".cubin")
                subprocess.run([os.environ["IKET_NVCC"], "-arch=" + arch, "-cubin", "-o", path, text], check=True,
                               timeout=300)
                self.assertEqual(set(self.names(path)), set(codegen_test.KERNELS))

    def test_places_in_a_program(self):
        """Also lambdas and functions of both sides, where what deduces the type of a range has to be of both, too."""
        found = self.names(self.compile("places.cu", "-std=c++20", "-DIKET_ENABLE"))
        self.assertGreater(len(found), 4)
        self.assertIn("each", found["Lambdas"])

    def test_any_name(self):
        names = [LONG, "", "r\u00e4ume", '\\"x\\"', "1234567", "12345678", "123456789"]
        marks = "".join(f'iket::mark("{name}"_ev); IKET_MARK("{name}");' for name in names)
        done = self.clang(self.written("names.cu", f'extern "C" __global__ void Names() {{ {marks} }}'),
                          os.path.join(self.folder, "names.cubin"), "-std=c++20", "-DIKET_ENABLE", "-Werror")
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        spelled = [name.replace("\\", "") for name in names for _ in range(2)]
        self.assertEqual(self.names(os.path.join(self.folder, "names.cubin")), {"Names": spelled})

    def test_one_event_in_several_objects(self):
        """Spelled in two ways, in a header's function, and in an object of nvcc's: they link, and all have names."""
        shared = 'inline __device__ void Inlined() { iket::mark("in a header"_ev); }\n'
        one = self.written("one.cu", shared + 'extern __device__ void Other(int);\n'
                           'extern "C" __global__ void One(int i) { iket::mark("both"_ev, i); Inlined(); Other(i); }')
        other = self.written("other.cu", shared + '__device__ __noinline__ void Other(int i) '
                             '{ IKET_MARK("both", i); Inlined(); iket::mark("other"_ev); }')
        objects = {name: os.path.join(self.folder, name) for name in ("one.o", "other.o", "nvcc.o", "linked.cubin")}
        options = ["-std=c++20", "-DIKET_ENABLE", "-rdc=true"]
        for source, name in ((one, "one.o"), (other, "other.o")):
            done = self.clang(source, objects[name], "-Werror", *options)
            self.assertEqual((done.returncode, done.stdout), (0, ""))
        nvcc = os.environ["IKET_NVCC"]
        subprocess.run([nvcc, "-arch=" + ARCH, "-I" + INCLUDE, *options, "-cubin", "-o", objects["nvcc.o"], other],
                       check=True, timeout=300)
        nvlink = os.path.join(os.environ["IKET_CUDA_ROOT"], "bin", "nvlink")
        for name in ("other.o", "nvcc.o"):
            with self.subTest(name):
                subprocess.run([nvlink, "-arch=" + ARCH, objects["one.o"], objects[name], "-o",
                                objects["linked.cubin"]], check=True, timeout=300)
                self.assertEqual(self.names(objects["linked.cubin"]),
                                 {"One": ["both", "in a header"], "_Z5Otheri": ["both", "in a header", "other"]})

    def test_host(self):
        """Host code has the note with marks on, and only then."""
        for options, count in ((["-DIKET_ENABLE"], 1), ([], 0)):
            path = os.path.join(self.folder, "host.o")
            done = self.clang(os.path.join(HERE, "forms.cu"), path, "--cuda-host-only", "-std=c++20", "-Werror",
                              *options)
            self.assertEqual((done.returncode, done.stdout), (0, ""))
            with open(path, "rb") as file:
                self.assertEqual(file.read().count(b"\5\0\0\0\4\0\0\0\1\0\0\0iket\0\0\0\0\1\0\0\0"), count)


if __name__ == "__main__":
    unittest.main()
