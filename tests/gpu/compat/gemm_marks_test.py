"""Marks are put where they belong, and into nothing that the editor does not know."""
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import gemm_marks  # noqa: E402

# The lines of CUTLASS's example that the editor looks for, in its order, with others in between.
EXAMPLE = """\
        self.kernel(
    def kernel(
                for k_tile in range(k_tile_cnt):
                    mainloop_pipeline.producer_acquire(mainloop_producer_state)
                    # Slice to global/shared memref to current k_tile
                    between()
                    cute.copy(
                        mcast_mask=a_mcast_mask,
                    )
                    cute.copy(
                        mcast_mask=b_mcast_mask,
                    )
                    mainloop_producer_state.advance()
                for k_tile in range(prologue_mma_cnt):
                    mainloop_pipeline.consumer_wait(mainloop_consumer_read_state)
                    # WGMMA
                    first()
                    cute.nvgpu.warpgroup.commit_group()
                for k_tile in range(prologue_mma_cnt, k_tile_cnt):
                    mainloop_pipeline.consumer_wait(mainloop_consumer_read_state)
                    # WGMMA
                    second()
                    cute.nvgpu.warpgroup.commit_group()
                    cute.nvgpu.warpgroup.wait_group(k_pipe_mmas)
                    release()
                cute.nvgpu.warpgroup.wait_group(0)
                # Epilogue
                third()
                    self.epilog_sync_barrier.arrive_and_wait()

                tile_sched.advance_to_next_work()
"""


class GemmMarksTest(unittest.TestCase):
    def nesting(self, text):
        """What stands in which range, without blank lines; each pop is as far to the right as its push."""
        open_ranges, found = [], {}
        for line in text.splitlines():
            word = line.strip()
            if ".range_push(" in word:
                open_ranges.append((word.split('"')[1], len(line) - len(line.lstrip())))
            elif ".range_pop(" in word:
                name, indentation = open_ranges.pop()
                self.assertEqual(indentation, len(line) - len(line.lstrip()))
            elif word:
                for name, _ in open_ranges:
                    found.setdefault(name, []).append(word)
        self.assertEqual(open_ranges, [])
        return found

    def test_ranges_hold_what_they_say(self):
        text = gemm_marks.marked(EXAMPLE)
        found = self.nesting(text)
        self.assertEqual(found["acquire"], ["mainloop_pipeline.producer_acquire(mainloop_producer_state)"])
        self.assertIn("between()", found["issue"])
        self.assertEqual(found["issue"][-2:], ["mcast_mask=b_mcast_mask,", ")"])
        self.assertEqual(found["wait"], ["mainloop_pipeline.consumer_wait(mainloop_consumer_read_state)"] * 2)
        self.assertEqual([word for word in found["mma"] if word.endswith(")") and "nvgpu" not in word], ["first()", "second()"])
        self.assertIn("cute.nvgpu.warpgroup.wait_group(k_pipe_mmas)", found["mma"])
        self.assertNotIn("release()", found["mma"])
        self.assertIn("third()", found["epilogue"])
        self.assertEqual(sorted(found), ["acquire", "epilogue", "issue", "mma", "wait"])

    def test_nothing_else_is_changed(self):
        lines = [line for line in gemm_marks.marked(EXAMPLE).splitlines() if gemm_marks.IKET not in line]
        self.assertEqual("\n".join(lines).replace("kernel_marked(", "kernel("), EXAMPLE.rstrip("\n"))

    def test_a_changed_example_is_refused(self):
        for line in EXAMPLE.splitlines():
            word = line.strip()
            if word in ("", ")", "cute.copy(") or word.startswith(("mcast_mask=a", "between", "first", "second", "third", "release",
                                                                   "mainloop_producer_state.adv")):
                continue
            if word in ("for k_tile in range(k_tile_cnt):", "for k_tile in range(prologue_mma_cnt):"):
                continue
            changed = EXAMPLE.replace(line, line + "  # changed")
            with self.assertRaises(gemm_marks.ChangedError, msg=line):
                gemm_marks.marked(changed)

    def test_the_program_says_so(self):
        with tempfile.TemporaryDirectory() as folder:
            path, out = os.path.join(folder, "example.py"), os.path.join(folder, "out.py")
            for text, code in ((EXAMPLE, 0), ("pass\n", 2)):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                done = subprocess.run([sys.executable, os.path.join(HERE, "gemm_marks.py"), path, out], check=False,
                                      capture_output=True, text=True)
                self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn("is not the example that this program knows: found 0 times and not 1:", done.stderr)


if __name__ == "__main__":
    unittest.main()
