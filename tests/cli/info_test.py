"""iket info: cubins, fatbins, programs, captures."""

import os
import re
import shutil
import unittest

import harness

CUBINS = os.path.join(harness.SOURCE_DIR, "tests", "data", "cubin")


class InfoTest(harness.CliTest):
    def data(self, name):
        return os.path.join(CUBINS, name)

    def test_cubin(self):
        path = self.data("saxpy.sm_90a.cubin")
        result = self.iket("info", path)
        self.assertEqual(result.code, 0, result.err)
        self.assertRegex(result.out, rf"^{path}: cubin, sm_90a, .* kernel")
        self.assertIn("no marks", result.out)

    def test_json(self):
        for name in os.listdir(CUBINS):
            if not name.endswith((".cubin", ".fatbin")):
                continue
            with self.subTest(name=name):
                result = self.iket("info", "--json", self.data(name))
                self.assertEqual(result.code, 0, result.err)
                info = result.json()
                self.assertEqual(info["kind"], name.rsplit(".", 1)[1])
                self.assertTrue(info["images"])

    def test_compare(self):
        clean, debug = self.data("saxpy.sm_100a.cubin"), self.data("saxpy.sm_100a.debug.cubin")
        kernels = self.iket("info", clean, "--compare", debug, "--json").json()["kernels"]
        alone = {side: self.iket("info", "--json", file).json()["images"][0]["functions"]
                 for side, file in (("before", clean), ("after", debug))}
        for kernel in kernels:
            for column, side in enumerate(("before", "after")):
                (registers,) = [f["registers"] for f in alone[side] if f["name"] == kernel["name"]]
                self.assertEqual(kernel["registers"][column], registers)
            self.assertGreater(kernel["instructions"][1], kernel["instructions"][0])
        self.assertEqual(len(kernels), 1)
        one, other = self.data("pipeline.sm_90a.cubin"), self.data("pipeline.sm_90a.rdc.cubin")
        (kernel,) = [kernel for kernel in self.iket("info", one, "--compare", other, "--json").json()["kernels"]
                     if kernel["name"] == "work64"]
        # Registers as cuobjdump -res-usage says; STL and LDL as nvdisasm shows them.
        self.assertEqual((kernel["registers"], kernel["stack_bytes"], kernel["local_accesses"],
                          kernel["warps_by_registers"]), ([24, 25], [8, 8], [1, 1], [64, 64]))
        recursive = self.data("pointers.sm_90a.linked.cubin")
        self.assertRegex(self.iket("info", recursive, "--compare", recursive, "--all").out, r"recursive +\d+ +\? ")
        text = self.iket("info", clean, "--compare", debug).out
        self.assertRegex(text, r"(?m)^  kernel +registers +stack +LDL\+STL +instructions +warps by registers$")
        self.assertRegex(text, r"(?m) \d+ -> \d+ ")
        same = self.iket("info", clean, "--compare", clean)
        self.assertRegex(same.out, r"(?m)^\d+ kernels? without a difference$")
        self.assert_one_line(self.iket("info", clean, "--compare", self.data("setmaxnreg.sm_90a.cubin")), 3)
        self.assert_one_line(self.iket("info", clean, "--compare", self.write("x", b"no code")), 3)
        self.assert_one_line(self.iket("info", clean, "--compare", self.path("nothing")), 3)

    def test_marks(self):
        path = os.path.join(harness.SOURCE_DIR, "tests", "data", "patch", "payloads.sm_90a.cubin")
        result = self.iket("info", "--sites", path)
        self.assertEqual(result.code, 0, result.err)
        self.assertRegex(result.out, r"(?m)^  even +mark +u32 +0x[0-9a-f]{8}$")
        self.assertRegex(result.out, r"(?m)^  payloads +\d+ +6  traced$")
        self.assertEqual(len(re.findall(r"(?m)^    at 0x[0-9a-f]{4}", result.out)), 6)

    def test_what_would_be_refused_has_its_reason(self):
        with open(os.path.join(harness.SOURCE_DIR, "tests", "data", "patch", "plain.sm_80.cubin"), "rb") as file:
            code = bytearray(file.read())
        code[49] = 75  # of e_flags: the architecture
        result = self.iket("info", self.write("plain.sm_75.cubin", bytes(code)))
        self.assertRegex(result.out, r"(?m)^  plain .* refused: code for sm_75")
        self.assertRegex(result.out, r"(?m)^  and 1 kernel without marks$")

    PTX = b"// made by hand\n.version 9.0\n.target sm_90\n.address_size 64\n"

    def test_ptx_only(self):
        """PTX with marks is compiled and traced by `profile`; whether it has marks its text shows."""
        traced = "PTX only: iket profile compiles it with the driver's linker, and traces that\n"
        advice = "no marks: build with -DIKET_ENABLE"
        result = self.iket("info", self.data("saxpy.ptx.fatbin"))
        self.assertEqual(result.code, 0, result.err)
        self.assertRegex(result.out, r"(?m)^PTX for compute_90\w? without marks: 1$")
        self.assertIn(advice, result.out)
        plain = self.iket("info", self.write("plain.ptx", self.PTX))
        self.assertRegex(plain.out, r"plain\.ptx: PTX, \S+ B, no marks\n")
        self.assertIn(advice, plain.out)
        self.assertNotIn(traced, result.out + plain.out)
        marked = self.write("marked.ptx", self.PTX + b".global .align 4 .b8 iket_decl[] = {0x49};\n\0")
        result = self.iket("info", marked)
        self.assertEqual(result.code, 0, result.err)
        self.assertRegex(result.out, r"marked\.ptx: PTX, \S+ B, with marks\n")
        self.assertIn(traced, result.out)
        self.assertNotIn(advice, result.out)
        image, = self.iket("info", "--json", marked).json()["images"]
        self.assertEqual((image["kind"], image["marks"], image["problem"]), ("PTX", True, ""))
        self.assert_one_line(self.iket("info", marked, "--compare", marked), 3)

    def test_text_is_no_ptx(self):
        """Any C++ may begin with a comment: PTX has its .version first."""
        for text in (b"// saxpy.cu\n#include <iket/iket.cuh>\n", b"/* .version 9.0 */\nint main() {}\n"):
            result = self.iket("info", self.write("saxpy.cu", text))
            self.assert_one_line(result, 3)
            self.assertIn("neither a capture nor PTX", result.err)

    def test_lto_ir_is_not_looked_into(self):
        path = self.data("saxpy.lto.fatbin")
        result = self.iket("info", path)
        self.assertEqual(result.code, 0, result.err)
        self.assertRegex(result.out, r"(?m)^LTO-IR for compute_\S+, not looked into: 1$")
        self.assertTrue(result.out.startswith(path + ": fatbin with 1 code image\n"), result.out)
        self.assertIn("LTO-IR is not looked into: whether it has marks shows", result.out)
        self.assertNotIn("no marks", result.out + result.err)

    def test_code_inside_other_files(self):
        """A program's fatbin is found, and so is a cubin that stands bare in its data."""
        with open(self.data("saxpy.zstd.fatbin"), "rb") as file:
            fatbin = file.read()
        with open(self.data("saxpy.sm_90a.cubin"), "rb") as file:
            cubin = file.read()
        program = shutil.which("true")
        with open(program, "rb") as file:
            elf = file.read()
        elf += bytes(-len(elf) % 64)
        path = self.write("app", elf + fatbin + bytes(-len(fatbin) % 64) + cubin + bytes(100))
        info = self.iket("info", "--json", path).json()
        self.assertEqual(info["kind"], "ELF file")
        where = [image["where"] for image in info["images"]]
        self.assertIn("fatbin 1, entry 1", where)
        self.assertTrue(where[-1].startswith("cubin at 0x"), where)
        self.assertEqual(info["images"][-1]["arch"], "sm_90a")
        self.assert_one_line(self.iket("info", program), 3)

    def test_damaged_cubins(self):
        with open(self.data("saxpy.sm_90a.cubin"), "rb") as file:
            cubin = file.read()
        for size in (64, 100, len(cubin) // 2, len(cubin) - 1):
            self.assert_one_line(self.iket("info", self.write("cut.cubin", cubin[:size])), 3)
        for at in range(0, len(cubin), max(1, len(cubin) // 60)):
            flipped = bytearray(cubin)
            flipped[at] ^= 0x10
            result = self.iket("info", "--sites", self.write("flipped.cubin", flipped))
            self.assertIn(result.code, (0, 3), (at, result.err))
            self.assertLessEqual(len(result.err.splitlines()), 1)

    def test_damaged_fatbins(self):
        with open(self.data("saxpy.zstd.fatbin"), "rb") as file:
            fatbin = file.read()
        for size in (17, 80, len(fatbin) // 2, len(fatbin) - 1):
            result = self.iket("info", self.write("cut.fatbin", fatbin[:size]))
            self.assertIn(result.code, (0, 3), result.err)
            self.assertLessEqual(len(result.err.splitlines()), 1)

    def test_capture(self):
        result = self.iket("info", self.capture("refused"))
        self.assertEqual(result.code, 0, result.err)
        self.assertRegex(result.out, r"(?m)^  process +4711: \./app --fast$")
        self.assertRegex(result.out, r"(?m)^  bad\(\) .* refused: names UR2 at 0x40$")
        self.assertRegex(result.out, r"(?m)^  load +push +u32 +0x[0-9a-f]{8}$")
        info = self.iket("info", "--json", self.path("refused.iketcap")).json()
        self.assertEqual(info["sessions"][0]["command"], ["./app", "--fast"])
        self.assertEqual(len(info["kernels"]), 2)


if __name__ == "__main__":
    unittest.main()
