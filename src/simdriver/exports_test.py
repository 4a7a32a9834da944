"""What lib/iket-sim/libcuda.so.1 exports, against the toolkit's header.

Usage: exports_test.py LIBRARY CUDA_H
"""

import re
import subprocess
import sys
import unittest

LIBRARY, HEADER = sys.argv[1:3]
GLIBC = re.compile(r"(ld-linux-x86-64|libc|libm|libdl|libpthread)\.so\.\d+")


def output_of(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.decode()


def header_text():
    with open(HEADER, encoding="utf-8") as file:
        return re.sub(r"/\*.*?\*/", " ", file.read(), flags=re.DOTALL)


class Exports(unittest.TestCase):
    """The header is read here as text, and in the build through the compiler: they must agree."""

    def setUp(self):
        lines = output_of("nm", "-D", "--defined-only", LIBRARY).splitlines()
        self.names = {line.split()[-1].split("@")[0] for line in lines}
        self.text = header_text()
        self.declared = set(re.findall(r"CUresult\s+CUDAAPI\s+(cu[A-Z]\w*)\s*\(", self.text))
        self.renamed = dict(re.findall(r"#define\s+(cu[A-Z]\w+)\s+(cu[A-Z]\w+)", self.text))
        macros = r"#define\s+(cu\w+)\s+__CUDA_API_(PT[DS][SZ])\((cu\w+)\)"
        self.twins = {
            f"{name}_{kind.lower()}" for _, kind, name in re.findall(macros, self.text)
        }

    def test_are_what_the_header_declares(self):
        self.assertGreater(len(self.declared), 400)
        self.assertEqual(self.declared - self.names, set())

    def test_have_every_version_that_the_header_renames_to(self):
        newest = {name for name in self.renamed.values() if not name.endswith("_ptsz")}
        self.assertGreater(len(newest), 40)
        self.assertEqual(newest - self.names, set())

    def test_have_every_twin_of_the_per_thread_default_stream(self):
        self.assertGreater(len(self.twins), 80)
        self.assertEqual(self.twins - self.names, set())

    def test_are_nothing_else(self):
        known = self.declared | set(self.renamed.values()) | self.twins
        known |= {"cuProfilerInitialize", "cuProfilerStart", "cuProfilerStop"}
        self.assertEqual(sorted(self.names - known), [])

    def test_need_glibc_alone(self):
        dynamic = output_of("readelf", "-dW", LIBRARY)
        needed = re.findall(r"NEEDED.*\[(.*)\]", dynamic)
        self.assertEqual([name for name in needed if not GLIBC.fullmatch(name)], [])
        self.assertIn("libcuda.so.1", re.search(r"SONAME.*", dynamic).group())
        self.assertNotIn("TEXTREL", dynamic)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
