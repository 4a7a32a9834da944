"""What of the corpus needs no GPU: its list, its checker, and that every marked kernel is traced.

Environment: IKET, IKET_CORPUS (the folder of cubins).
"""
import glob
import json
import os
import re
import subprocess
import unittest

import corpus_check

HERE = os.path.dirname(os.path.abspath(__file__))
RESULTS = os.path.join(HERE, os.pardir, "data", "corpus", "results.jsonl")


def manifest():
    with open(corpus_check.MANIFEST, encoding="utf-8") as file:
        return [line.split() for line in file if line.strip() and not line.startswith("#")]


class ManifestTest(unittest.TestCase):
    def test_lists_what_the_sources_hold(self):
        found = set()
        for path in glob.glob(os.path.join(HERE, "*.cu")):
            with open(path, encoding="utf-8") as file:
                source = os.path.splitext(os.path.basename(path))[0]
                found |= {(name, source, words) for name, words in
                          re.findall(r"CORPUS_KERNEL\((\w+), (\d+)\)", file.read())}
        self.assertEqual({tuple(row[:3]) for row in manifest()}, found)

    def test_every_kernel_has_a_result(self):
        with open(RESULTS, encoding="utf-8") as file:
            recorded = {row["kernel"]: row["compare"] for row in map(json.loads, file)}
        self.assertEqual(recorded, {row[0]: row[4] for row in manifest()})


class CheckerTest(unittest.TestCase):
    def setUp(self):
        with open(RESULTS, encoding="utf-8") as file:
            self.rows = {row["kernel"]: row for row in map(json.loads, file)}

    def changed(self, kernel, change, at=5):
        row = dict(self.rows[kernel], hash="0")
        words = corpus_check.words_of(row)
        words[at] = change(words[at])
        return corpus_check.difference(dict(row, words="".join(f"{word:08x}" for word in words)),
                                       self.rows[kernel])

    def test_exact_results_must_be_exact(self):
        self.assertTrue(self.changed("int_mul", lambda word: word ^ 1))
        self.assertTrue(self.changed("f32_approximate", lambda word: word ^ 1))

    def test_sums_of_products_may_differ_a_little(self):
        self.assertEqual(self.changed("mma_f16_f32", lambda word: word ^ 1), "")
        self.assertTrue(self.changed("mma_f16_f32", lambda word: word ^ 0x40000000))


class MarkedTest(unittest.TestCase):
    def test_every_marked_kernel_would_be_traced(self):
        seen = set()
        for path in sorted(glob.glob(os.path.join(os.environ["IKET_CORPUS"], "*.marked.cubin"))):
            done = subprocess.run([os.environ["IKET"], "info", "--sites", "--json", path], check=True,
                                  timeout=120, stdout=subprocess.PIPE)
            image, = json.loads(done.stdout)["images"]
            for function in image["functions"]:
                with self.subTest(function["name"]):
                    self.assertEqual(function["refusal"], "")
                if function["sites"]:
                    seen.add(function["name"])
        self.assertEqual(seen, {row[0] for row in manifest()})


if __name__ == "__main__":
    unittest.main()
