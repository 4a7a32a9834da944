"""iket config: paths from where the program lies, quoted where a shell needs it.

That compilers and build systems can use what it says is shown by tests/cmake/consumer.
"""

import os
import shlex
import shutil
import subprocess
import unittest

import harness


class ConfigTest(harness.CliTest):
    def tree(self, *names, header=True):
        """A tree with our program and a header in it; its root."""
        root = self.path(*names)
        os.makedirs(os.path.join(root, "bin"))
        shutil.copy(harness.IKET, os.path.join(root, "bin"))
        if header:
            os.makedirs(os.path.join(root, "include/iket"))
            self.write(os.path.join(root, "include/iket/iket.cuh"), b"")
        return root

    def say(self, root, *options):
        result = self.run_program(os.path.join(root, "bin/iket"), "config", *options)
        self.assertEqual((result.code, result.err), (0, ""))
        return result.out

    def test_each_answer_alone(self):
        root = self.tree("here")
        self.assertEqual(self.say(root, "--prefix"), f"{root}\n")
        self.assertEqual(self.say(root, "--includedir"), f"{root}/include\n")
        self.assertEqual(self.say(root, "--libdir"), f"{root}/lib\n")
        self.assertEqual(self.say(root, "--session-libdir"), f"{root}/lib/iket-session\n")
        self.assertEqual(self.say(root, "--cflags"), f"-I{root}/include\n")
        self.assertEqual(self.say(root, "--cflags", "--enable"), f"-I{root}/include -DIKET_ENABLE\n")
        self.assertEqual("iket " + self.say(root, "--version"), self.iket("--version").out)

    def test_a_moved_tree_knows_its_new_place(self):
        root = self.tree("before")
        os.rename(root, self.path("after"))
        self.assertEqual(self.say(self.path("after"), "--prefix"), self.path("after") + "\n")

    def test_a_link_to_the_program_is_followed(self):
        root = self.tree("real")
        os.makedirs(self.path("elsewhere/bin"))
        os.symlink(os.path.join(root, "bin/iket"), self.path("elsewhere/bin/iket"))
        self.assertEqual(self.say(self.path("elsewhere"), "--prefix"), f"{root}\n")

    def test_flags_are_words_of_a_shell_and_paths_are_not(self):
        root = self.tree("it's a $place")
        self.assertEqual(self.say(root, "--includedir"), f"{root}/include\n")
        said = self.say(root, "--cflags", "--enable")
        wanted = [f"-I{root}/include", "-DIKET_ENABLE"]
        self.assertEqual(shlex.split(said), wanted)
        shell = subprocess.run(["sh", "-c", f"printf '%s\\n' {said}"], capture_output=True,
                               check=True, text=True)
        self.assertEqual(shell.stdout.splitlines(), wanted)

    def test_all_of_it_in_a_table(self):
        root = self.tree("here")
        rows = dict(line.split(maxsplit=1) for line in self.say(root).splitlines()
                    if not line.startswith("with"))
        self.assertEqual(rows["prefix"], root)
        self.assertEqual(rows["cflags"], f"-I{root}/include")
        self.assertIn("make install", rows["pkg-config"])
        self.assertIn(f"with marks    -I{root}/include -DIKET_ENABLE\n", self.say(root))

    def test_json(self):
        root = self.tree("here")
        os.makedirs(os.path.join(root, "lib/cmake/iket"))
        said = self.run_program(os.path.join(root, "bin/iket"), "config", "--json").json()
        self.assertEqual(said["includedir"], f"{root}/include")
        self.assertEqual(said["cflags_enable"], f"-I{root}/include -DIKET_ENABLE")
        self.assertEqual(said["cmake"], f"{root}/lib/cmake/iket")
        self.assertEqual(said["pkg_config"], "")

    def test_a_tree_without_the_header_says_so(self):
        root = self.tree("torn", header=False)
        for options in ([], ["--cflags"], ["--includedir"], ["--json"]):
            result = self.run_program(os.path.join(root, "bin/iket"), "config", *options)
            self.assert_one_line(result, 3)
            self.assertIn(f"{root}/include/iket/iket.cuh: is not there", result.err)
        self.assertEqual(self.say(root, "--prefix"), f"{root}\n")


if __name__ == "__main__":
    unittest.main()
