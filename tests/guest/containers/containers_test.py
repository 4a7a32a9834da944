"""Every container of code and every call that loads it, on the software device: marked code is found, patched
and recorded, to the event; and the note that says where marks may be."""

import glob
import json
import os
import re
import shutil
import struct
import subprocess
import tempfile
import unittest

IKET = os.environ["IKET"]
SIM = os.environ["IKET_SIM"]
GUESTS = os.environ["IKET_GUESTS"]
IMAGES = os.path.join(GUESTS, "containers_of_code")
RESULT = re.compile(r"256 values, [0-9a-f]{8}, ok\n$")
EVENTS = 8 * 3  # of 8 warps
NOTHING_RECORDED = 4


class Containers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.output = os.path.join(folder.name, "out")

    def run_(self, way, *images, program="containers", compiler=False, **variables):
        """Exit code, what the program said, what the tools said, events kept."""
        library = os.environ["IKET_PTX_DRIVER"] if compiler else os.path.dirname(SIM)
        more = {"IKET_FAIL_DRIVER": SIM, "IKET_PTX_CUBIN": os.path.join(IMAGES, "work.cubin")} if compiler else {}
        done = subprocess.run(
            [IKET, "profile", "-o", self.output, "--clobber", "--export", "none", "--",
             os.path.join(GUESTS, program), way, *(os.path.join(IMAGES, image) for image in images)],
            env={**os.environ, "LD_LIBRARY_PATH": library, **more, **variables},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False, text=True)
        kept = re.search(r"events +([\d,]+) kept, 0 lost", done.stderr)
        return done.returncode, done.stdout, done.stderr, int(kept.group(1)) if kept else None

    def records(self, way, *images, **how):
        code, out, err, events = self.run_(way, *images, **how)
        self.assertRegex(out, RESULT, err)
        self.assertEqual((code, events), (0, EVENTS), err)
        self.assertNotIn("is not traced", err)
        return out, err

    def records_nothing(self, way, *images, **how):
        code, out, err, events = self.run_(way, *images, **how)
        self.assertRegex(out, RESULT, err)
        self.assertEqual((code, events or 0), (NOTHING_RECORDED, 0), err)
        return out, err

    def capture(self):
        (path,) = glob.glob(os.path.join(self.output, "*.iketcap"))
        done = subprocess.run([IKET, "info", "--json", path], stdout=subprocess.PIPE, timeout=60, check=True)
        return json.loads(done.stdout)

    def test_every_container(self):
        for image in ("work.cubin", "several.fatbin", "specific.fatbin", "both.fatbin", "lto.fatbin", "zstd.fatbin",
                      "lz4.fatbin", "large_zstd.fatbin", "large_lz4.fatbin"):
            with self.subTest(image=image):
                self.records("data", image)

    def test_every_call(self):
        for way in ("module", "data", "data-ex", "fat-binary", "library", "library-first", "library-file"):
            for image in ("both.fatbin", "zstd.fatbin", "work.cubin"):
                if way == "fat-binary" and image == "work.cubin":
                    continue
                with self.subTest(way=way, image=image):
                    self.records(way, image)

    def test_wrappers(self):
        for image in ("both.fatbin", "lz4.fatbin", "large_zstd.fatbin"):
            with self.subTest(image=image):
                self.records("wrapper", image)
        # Machine code that nvcc linked, in front of the fatbins of its objects.
        self.records("linked", "linked_both.fatbin", "object.fatbin")

    def test_only_code_for_this_gpu_is_spoken_of(self):
        _, err = self.records("data", "several.fatbin")
        self.assertNotIn("sm_80", err)
        self.assertNotIn("sm_100", err)
        info = self.capture()
        self.assertEqual([kernel["fate"] for kernel in info["kernels"]], ["traced"])
        self.assertEqual(len(info["declarations"]), 3)

    def test_a_kernel_for_two_kinds_of_one_gpu_is_one_kernel(self):
        # The driver takes one of the two; the launch is found by the number that both have.
        self.records("data", "specific.fatbin")
        info = self.capture()
        self.assertEqual(len(info["declarations"]), 2 * 3)
        self.assertEqual(len(info["kernels"]), 1)

    def test_without_marks(self):
        self.records_nothing("data", "plain.fatbin")

    def test_embedded_code_is_unpacked_where_a_note_says_that_there_are_marks(self):
        self.records("embedded")
        self.records_nothing("embedded", program="containers_unmarked")

    def test_embedded_code_of_small_programs_is_unpacked(self):
        # Marks of other tools leave no note.
        self.records("embedded", program="containers_small")

    def test_embedded_code_of_an_older_header(self):
        # No note; what is not compressed is found nevertheless.
        self.records("embedded", program="containers_older")

    # --- PTX -----------------------------------------------------------------------------------

    def test_ptx_is_compiled_first(self):
        for way in ("module", "data", "data-ex", "library", "library-first", "library-file"):
            for image in ("work.ptx", "ptx.fatbin"):
                with self.subTest(way=way, image=image):
                    self.records(way, image, compiler=True)
        self.records("wrapper", "ptx.fatbin", compiler=True)
        # Of objects whose device code the driver links.
        self.records("linked", "linked_ptx.fatbin", "object_ptx.fatbin", compiler=True)

    def test_machine_code_goes_before_ptx(self):
        self.records("data", "both.fatbin", compiler=True, IKET_PTX_FAILS="create")

    def test_the_callers_options_and_logs(self):
        out, _ = self.records("data-log", "work.ptx", compiler=True)
        self.assertIn("info 25 'linker of 1, 32 registers', error 512 ''", out)

    def test_a_linker_that_fails_leaves_no_trace(self):
        for step in ("create", "add", "complete"):
            with self.subTest(step=step):
                out, err = self.records_nothing("data-log", "work.ptx", compiler=True, IKET_PTX_FAILS=step)
                # As if nothing had been: the log is that of the program's own call, into a whole buffer.
                self.assertIn("info 23 'load call, 32 registers', error 512 ''", out)
                self.assertEqual(err.count("iket: marked PTX could not be compiled (the driver's linker: "), 1, err)
                self.assertIn("the program runs the original, which is not traced", err)

    def test_a_program_whose_ptx_does_not_compile_gets_its_own_error(self):
        code, out, err, _ = self.run_("data", "work.ptx", compiler=True, IKET_PTX_FAILS="complete",
                                      IKET_PTX_LOAD_FAILS="1")
        self.assertEqual(code, 1, err)
        self.assertIn("CUDA_ERROR_INVALID_PTX\n", out)


def notes(path):
    """The (name, type, contents) of all notes that are loaded with an ELF file."""
    with open(path, "rb") as file:
        data = file.read()
    offset, size, count = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
    found = []
    for i in range(count):
        kind, _, at, _, _, length, _, align = struct.unpack_from("<IIQQQQQQ", data, offset + i * size)
        if kind != 4:
            continue
        end, step = at + length, 8 if align == 8 else 4
        while at + 12 <= end:
            name, contents, type_ = struct.unpack_from("<III", data, at)
            begin = -(-(at + 12 + name) // step) * step
            found.append((data[at + 12:at + 12 + name], type_, data[begin:begin + contents]))
            at = -(-(begin + contents) // step) * step
    return found


class Note(unittest.TestCase):
    OURS = (b"iket\0", 1, struct.pack("<I", 1))

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = lambda name: os.path.join(folder.name, name)

    def those_here(self, first, *others):
        """The first is on every machine that builds this."""
        self.assertTrue(shutil.which(first), first)
        return [first] + [program for program in others if shutil.which(program)]

    def nvcc(self, *arguments):
        subprocess.run([os.environ["IKET_NVCC"], "-std=c++20", "-arch=sm_90", "-I", os.environ["IKET_INCLUDE"],
                        "-Xcompiler=-fPIC", *arguments], check=True, cwd=os.path.dirname(__file__) or ".")

    def test_of_a_library_whoever_compiles_its_host_code(self):
        for compiler in self.those_here("g++", "clang++", "clang++-19"):
            with self.subTest(compiler=compiler):
                library = self.path(f"{compiler}.so")
                self.nvcc("-DIKET_ENABLE", f"-ccbin={compiler}", "-allow-unsupported-compiler", "-shared",
                          "-cudart=none", "-o", library, "work.cu", "-Xlinker=--gc-sections")
                self.assertIn(self.OURS, notes(library))
                subprocess.run(["strip", library], check=True)
                self.assertIn(self.OURS, notes(library))

    def test_of_a_static_archive_under_every_linker(self):
        self.nvcc("-DIKET_ENABLE", "-c", "-o", self.path("work.o"), "work.cu")
        subprocess.run(["ar", "rcs", self.path("libwork.a"), self.path("work.o")], check=True)
        with open(self.path("user.c"), "w", encoding="ascii") as file:
            file.write("extern char Work; char *user(void) { return &Work; }\n")
        for linker in self.those_here("ld.bfd", "ld.gold", "ld.lld"):
            with self.subTest(linker=linker):
                library = self.path(f"{linker}.so")
                subprocess.run(["g++", "-shared", "-fPIC", f"-fuse-ld={linker.removeprefix('ld.')}", "-o", library,
                                self.path("user.c"), self.path("libwork.a"), "-Wl,--gc-sections", "-Wl,-s"],
                               check=True)
                self.assertIn(self.OURS, notes(library))

    def test_not_of_what_has_no_marks(self):
        library = self.path("plain.so")
        self.nvcc("-shared", "-cudart=none", "-o", library, "work.cu")
        self.assertNotIn(self.OURS, notes(library))

    def test_of_the_programs(self):
        marked = set(glob.glob(os.path.join(GUESTS, "work_*"))) - {os.path.join(GUESTS, "work_unmarked")}
        self.assertGreaterEqual(len(marked), 6)
        for path in marked:
            self.assertIn(self.OURS, notes(path), path)
        self.assertNotIn(self.OURS, notes(os.path.join(GUESTS, "work_unmarked")))


if __name__ == "__main__":
    unittest.main()
