"""The tables say what the programs printed, and nothing where one did not."""
import contextlib
import io
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tables  # noqa: E402


class TablesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def table(self, *arguments):
        out, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            code = tables.main(list(arguments))
        return code, out.getvalue(), errors.getvalue()

    def costs(self, name, clean, mark):
        text = "".join(f"event {kind} 8 {value}\n" for kind, value in
                       (("clean", clean), ("mark", mark), ("payload", mark + 1), ("range", mark + 2)))
        return self.write(name, "something\n" + text)

    def test_cost(self):
        files = ["--marked", self.costs("m", 256, 260), "--theirs", self.costs("t", 257, 340), "--ours", self.costs("o", 256, 270)]
        code, out, _ = self.table("cost", *files)
        self.assertEqual(code, 0)
        self.assertIn("| one mark, 8 | 256.0 | +4.0 | +83.0 | +14.0 |", out)
        self.assertIn("| push and pop, 8 | 256.0 | +6.0 | +85.0 | +16.0 |", out)

    def test_the_last_run_counts(self):
        theirs = self.costs("t", 257, 340)
        with open(theirs, "r+", encoding="utf-8") as file:
            text = file.read()
            file.seek(0)
            file.write("event clean 8 1\nevent mark 8 1\n" + text)
        files = ["--marked", self.costs("m", 256, 260), "--theirs", theirs, "--ours", self.costs("o", 256, 270)]
        self.assertIn("| +83.0 |", self.table("cost", *files)[1])

    def test_nothing_was_measured(self):
        half = self.write("h", "event clean 8 256\nevent mark 8 260\n")
        for theirs in (half, self.write("e", "Traceback\n"), "/nowhere"):
            code, _, errors = self.table("cost", "--marked", self.costs("m", 1, 2), "--theirs", theirs,
                                         "--ours", self.costs("o", 1, 2))
            self.assertEqual((code, len(errors.splitlines())), (1, 1), errors)

    def test_gemm(self):
        def run(name, clean, marked):
            return self.write(name, f"gemm clean {clean} 1 900 12\ngemm marked {marked} {marked - 1} {marked + 1} 12\n")
        files = ["--marked", run("m1", 200, 201), run("m2", 100, 101), run("m3", 150, 150.75),
                 "--theirs", run("t", 152, 160), "--ours", run("o", 150, 151.5)]
        code, out, _ = self.table("gemm", *files)
        self.assertEqual(code, 0)
        self.assertIn("| marks compiled in, not collected | 150.00 | 150.75 | +0.50 % | +0.50 % | 100.00 to 202.00 |", out)
        self.assertIn("| run-iket | 152.00 | 160.00 | +5.26 % | +6.67 % |", out)
        self.assertIn("| iket | 150.00 | 151.50 | +1.00 % | +1.00 % |", out)
        broken = self.write("b", "gemm clean 1 1 1 1\n")
        self.assertEqual(self.table("gemm", "--marked", broken, "--theirs", broken, "--ours", broken)[0], 1)

    def test_json(self):
        ours = self.write("o", "seconds 4.000\nbytes 4500000000\n")
        done = self.write("t", "seconds 200.5\nbytes 3860000000\n")
        self.assertIn("**50 times faster** | 4.50 GB", self.table("json", "--theirs", done, "--ours", ours)[1])
        late = self.write("l", "stopped 240\n")
        out = self.table("json", "--theirs", late, "--ours", ours)[1]
        self.assertIn("not done after 240", out)
        self.assertIn("**more than 60 times faster**", out)
        self.assertEqual(self.table("json", "--theirs", self.write("e", "Traceback\n"), "--ours", ours)[0], 1)

    def test_wrong_use(self):
        for arguments in (["cost"], ["json", "--ours", "x"]):
            with self.assertRaises(SystemExit):
                self.table(*arguments)


if __name__ == "__main__":
    unittest.main()
