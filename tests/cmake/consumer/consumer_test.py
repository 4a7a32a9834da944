"""Somebody else's program finds an installed iket: by find_package, by pkg-config, by iket config.

Each way compiles the marked kernel.cu with nvcc, and `iket info` must see its mark. The tree is what
`make install` puts, under a prefix with a blank in its name, and then the same moved elsewhere, as that of
`make dist` is; last, the build folder itself.
"""

import json
import os
import shlex
import shutil
import subprocess
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD, SOURCE, CMAKE, GENERATOR, NVCC = (
    os.environ[name] for name in ("BUILD", "SOURCE", "CMAKE", "GENERATOR", "NVCC"))


def run(*command, **environment):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, text=True,
                          env={**os.environ, **environment}, timeout=300)
    if done.returncode != 0:
        raise AssertionError(f"{shlex.join(command)} ends with {done.returncode}:\n"
                             f"{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.prefix = os.path.join(cls.folder, "a prefix")
        # `make install` without its `all`: the tests' build folder is built.
        run("make", "-C", SOURCE, "-o", "all", "install", f"BUILD={BUILD}", f"PREFIX={cls.prefix}",
            MAKEFLAGS="", MAKEOVERRIDES="")

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = folder.name

    def iket(self, *arguments):
        return run(os.path.join(self.prefix, "bin/iket"), *arguments)

    def compile(self, flags):
        cubin = os.path.join(self.work, "consumer.cubin")
        run(NVCC, *flags, "-std=c++20", "-arch=sm_90", "-cubin", "-o", cubin,
            os.path.join(HERE, "kernel.cu"))
        return cubin

    def assert_marked(self, cubin):
        (image,) = json.loads(self.iket("info", "--json", cubin))["images"]
        self.assertEqual({declaration["name"] for declaration in image["declarations"]}, {"scale"})
        (kernel,) = image["functions"]
        self.assertEqual((kernel["name"], kernel["refusal"], len(kernel["sites"])), ("scale", "", 2))

    def assert_unmarked(self, cubin):
        (image,) = json.loads(self.iket("info", "--json", cubin))["images"]
        self.assertEqual(image["declarations"], [])

    def test_find_package(self):
        build = os.path.join(self.work, "build")
        run(CMAKE, "-G", GENERATOR, "-S", HERE, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}",
            f"-DNVCC={NVCC}")
        run(CMAKE, "--build", build)
        self.assert_marked(os.path.join(build, "consumer.cubin"))

    def test_pkg_config(self):
        said = run("pkg-config", "--cflags", "iket",
                   PKG_CONFIG_PATH=os.path.join(self.prefix, "lib/pkgconfig"))
        flags = shlex.split(said)
        self.assertEqual(len(flags), 1, said)
        self.assert_unmarked(self.compile(flags))
        self.assert_marked(self.compile([*flags, "-DIKET_ENABLE"]))

    def test_iket_config(self):
        said = self.iket("config", "--cflags", "--enable")
        self.assert_marked(self.compile(shlex.split(said)))
        self.assert_unmarked(self.compile(shlex.split(self.iket("config", "--cflags"))))
        include = self.iket("config", "--includedir").rstrip("\n")
        self.assert_marked(self.compile(["-I", include, "-DIKET_ENABLE"]))

    def test_the_python_package_finds_its_run_iket(self):
        said = run("python3", "-m", "iketrace.run_iket", "--version", PATH="/usr/bin:/bin",
                   PYTHONPATH=os.path.join(self.prefix, "lib/iket/python"), PYTHONDONTWRITEBYTECODE="1")
        self.assertEqual(said, "run-iket of " + self.iket("--version"))

    def test_a_program_that_profiles_itself(self):
        place = json.loads(self.iket("config", "--json"))
        program = os.path.join(self.work, "session")
        run("cc", "-std=c11", "-I", place["includedir"], "-o", program,
            os.path.join(SOURCE, "tests/session/profiling_session.c"), "-L", place["session_libdir"], "-liket_injection")
        self.assertEqual(run(program, LD_LIBRARY_PATH=place["session_libdir"]), "")

    def test_every_version_is_the_same(self):
        version = self.iket("config", "--version").strip()
        said = run("pkg-config", "--modversion", "iket",
                   PKG_CONFIG_PATH=os.path.join(self.prefix, "lib/pkgconfig"))
        self.assertEqual(said.strip(), version)
        self.assertEqual(self.iket("--version").split()[1], version)

    def test_the_table_names_what_is_there(self):
        said = json.loads(self.iket("config", "--json"))
        for key, inside in (("includedir", "/iket/iket.cuh"), ("libdir", "/libiket_inject.so"),
                            ("session_libdir", "/libiket_injection.so"),
                            ("cmake", "/iketConfig.cmake"), ("pkg_config", "")):
            self.assertTrue(os.path.exists(said[key] + inside), f"{key}: {said[key]}")


class Moved(Installed):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        before, cls.prefix = cls.prefix, os.path.join(cls.folder, "elsewhere")
        os.rename(before, cls.prefix)


class BuildFolder(unittest.TestCase):
    prefix = BUILD
    setUp, iket, compile = Installed.setUp, Installed.iket, Installed.compile
    assert_marked, assert_unmarked = Installed.assert_marked, Installed.assert_unmarked
    test_iket_config = Installed.test_iket_config
    test_a_program_that_profiles_itself = Installed.test_a_program_that_profiles_itself


if __name__ == "__main__":
    unittest.main()
