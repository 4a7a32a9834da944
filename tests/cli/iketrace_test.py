"""The Python package: which run-iket it runs, and that its shim gives way to NVIDIA's package."""

import os
import shutil
import subprocess
import sys
import tomllib
import unittest

import harness

PACKAGE = os.path.join(harness.SOURCE_DIR, "python")


class PythonTest(harness.CliTest):
    def python(self, *arguments, path=PACKAGE, **variables):
        """-S: what this machine's Python has besides must not be found."""
        environment = {"PATH": "/nowhere", "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", **variables}
        return self.run_program(sys.executable, "-S", *arguments, env=environment)

    def program(self, *names, is_iket=True):
        """A program `run-iket` that says where it lies; with iket's collector beside it or not."""
        path = self.path(*names, "bin/run-iket")
        os.makedirs(os.path.dirname(path))
        self.write(path, f'#!/bin/sh\necho "{names[0]}: $*"\nexit 7\n'.encode())
        os.chmod(path, 0o755)
        if is_iket:
            os.makedirs(self.path(*names, "lib"))
            self.write(self.path(*names, "lib/libiket_inject.so"), b"")
        return path

    def assert_ran(self, result, said):
        self.assertEqual((result.code, result.out, result.err), (7, said + "\n", ""))


class Package(PythonTest):
    def test_the_real_one(self):
        result = self.python("-m", "iketrace.run_iket", "--version", IKETRACE_RUN_IKET=harness.RUN_IKET)
        self.assertEqual((result.code, result.err), (0, ""))
        self.assertRegex(result.out, r"^run-iket of iket \d")

    def test_the_variable_says_which(self):
        path = self.program("said")
        other = self.program("other")
        result = self.python("-m", "iketrace.run_iket", "a b", "--", "-c", IKETRACE_RUN_IKET=path,
                             PATH=os.path.dirname(other))
        self.assert_ran(result, "said: a b -- -c")

    def test_else_that_of_its_installation(self):
        self.program("prefix")
        installed = self.path("prefix/lib/iket/python")
        shutil.copytree(PACKAGE, installed)
        other = self.program("other")
        self.assert_ran(self.python("-m", "iketrace.run_iket", path=installed, PATH=os.path.dirname(other)), "prefix: ")

    def test_else_the_first_of_path_that_is_ours(self):
        nvidias = self.program("nvidia", is_iket=False)
        ours = self.program("ours")
        os.makedirs(self.path("links"))
        os.symlink(ours, self.path("links/run-iket"))
        folders = [os.path.dirname(nvidias), self.path("links"), os.path.dirname(self.program("later"))]
        self.assert_ran(self.python("-m", "iketrace.run_iket", "x", PATH=":".join(folders)), "ours: x")

    def test_none_is_one_clear_line(self):
        nvidias = self.program("nvidia", is_iket=False)
        for variables, says in (
            ({}, "nor on PATH; IKETRACE_RUN_IKET may name it"),
            ({"PATH": os.path.dirname(nvidias)}, "nor on PATH"),
            ({"IKETRACE_RUN_IKET": nvidias}, "which is no run-iket of iket"),
            ({"IKETRACE_RUN_IKET": self.path("missing")}, "which is no run-iket of iket"),
        ):
            result = self.python("-m", "iketrace.run_iket", "profile", **variables)
            self.assertEqual((result.code, result.out), (1, ""))
            self.assertRegex(result.err, r"^iketrace: .*\n$")
            self.assertIn(says, result.err)

    def test_as_a_function(self):
        path = self.program("said")
        code = "import iketrace.run_iket as r; print(r.run(['x']).returncode, flush=True)"
        result = self.python("-c", code, IKETRACE_RUN_IKET=path)
        self.assertEqual((result.code, result.out), (0, "said: x\n7\n"))

    def test_it_has_the_version_of_iket(self):
        with open(os.path.join(PACKAGE, "pyproject.toml"), "rb") as file:
            project = tomllib.load(file)["project"]
        self.assertEqual((project["requires-python"], project["dependencies"]), (">=3.8", []))
        self.assertNotIn("run-iket", project["scripts"])
        result = self.python("-c", "import iketrace; print(iketrace.__version__)")
        self.assertEqual(result.out, project["version"] + "\n")
        self.assertEqual(f"iket {project['version']}\n", self.iket("--version").out)


class Shim(PythonTest):
    SHIM = os.path.join(PACKAGE, "shim")

    def setUp(self):
        super().setUp()
        self.ours = self.program("ours")

    def nvidias(self, name="nvidia"):
        """A folder with a package such as theirs in it."""
        for module, text in (("__init__", "from .cli import WHO"), ("cli/__init__", "WHO = 'NVIDIA'"),
                             ("cli/main", "import sys\nfrom iket import WHO\nfrom . import WHO as AGAIN\n"
                                          "def entrypoint():\n    print(WHO, AGAIN, *sys.argv[1:])\n"
                                          "if __name__ == '__main__':\n    entrypoint()")):
            path = self.path(name, "iket", module + ".py")
            os.makedirs(os.path.dirname(path), exist_ok=True)
            self.write(path, text.encode())
        return self.path(name)

    def main(self, path, *arguments):
        return self.python("-m", "iket.cli.main", *arguments, path=path, IKETRACE_RUN_IKET=self.ours)

    def test_alone_it_runs_ours(self):
        for path in (self.SHIM, self.SHIM + ":" + PACKAGE, PACKAGE + ":" + self.SHIM, self.SHIM + "/"):
            self.assert_ran(self.main(path, "--clobber", "profile"), "ours: --clobber profile")

    def test_it_gives_way_to_nvidias_in_front_of_it_and_behind_it(self):
        theirs = self.nvidias()
        for path in (f"{self.SHIM}:{theirs}", f"{theirs}:{self.SHIM}", f"{self.SHIM}:{PACKAGE}:{theirs}",
                     f"{self.SHIM}:{self.SHIM}/:{theirs}"):
            with self.subTest(path):
                result = self.main(path, "x")
                self.assertEqual((result.code, result.out, result.err), (0, "NVIDIA NVIDIA x\n", ""))

    def test_it_becomes_nvidias_for_whoever_imports_it(self):
        theirs = self.nvidias()
        code = "import iket, iket.cli; print(iket.WHO, iket.__file__, iket.__spec__.origin, iket.cli.__file__)"
        result = self.python("-c", code, path=f"{self.SHIM}:{theirs}")
        self.assertEqual(result.err, "")
        package = os.path.join(theirs, "iket")
        self.assertEqual(result.out.split(), ["NVIDIA", f"{package}/__init__.py", f"{package}/__init__.py",
                                              f"{package}/cli/__init__.py"])

    def test_one_of_nvidias_that_cannot_be_imported_is_not_hidden(self):
        theirs = self.nvidias()
        self.write(os.path.join(theirs, "iket/__init__.py"), b"raise ImportError('no driver')")
        result = self.main(f"{self.SHIM}:{theirs}")
        self.assertEqual(result.code, 1)
        self.assertIn("no driver", result.err)

    def test_a_folder_of_that_name_is_no_package(self):
        os.makedirs(self.path("stray/iket/cli"))
        for path in (f"{self.SHIM}:{self.path('stray')}", f"{self.path('stray')}:{self.SHIM}"):
            self.assert_ran(self.main(path, "x"), "ours: x")

    def test_as_a_function(self):
        code = "import sys, iket.cli.main as m; sys.argv[1:] = ['x']; print(m.main().returncode, flush=True)"
        result = self.python("-c", code, path=self.SHIM, IKETRACE_RUN_IKET=self.ours)
        self.assertEqual(result.out, "ours: x\n7\n")


if __name__ == "__main__":
    unittest.main()
