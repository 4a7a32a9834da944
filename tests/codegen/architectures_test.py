"""Every architecture: marks cost nothing when they are off, and what is patched disassembles, every word of it.

No GPU is needed, and none proves here that such code runs: docs/design/architectures.md.

Environment: IKET_NVCC, IKET_NVDISASM, IKET_INCLUDE, IKET_PATCH_CUBIN, IKET.
"""
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.path.insert(0, HERE)
from cubin import Cubin  # noqa: E402

ARCHITECTURES = ["80", "86", "87", "88", "89", "90", "90a", "100", "100a", "100f", "103a", "110", "120a", "121"]
ZOO = ["codegen/forms.cu", "codegen/places.cu", "data/patch/payloads.cu", "data/patch/exits.cu", "data/patch/stores.cu",
       "corpus/control.cu", "corpus/integer.cu", "corpus/floating.cu", "corpus/memory.cu", "corpus/half.cu"]
# What the patcher may replace: the words of a mark and what its comparison guards, exits, and the first instruction.
MAY_CHANGE = r"PMTRIG 0xe[1-4]|ISETP|STS|EXIT|@!?P\d "
WORD = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;\s+/\* 0x([0-9a-f]{16}) \*/\s+/\* 0x([0-9a-f]{16}) \*/")
CONTROL = 0x1FFFFF << 41  # and above them hints of operands, which go with it


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)


def each(*lists):
    """Calls check(folder, *items) for all combinations, as many at a time as there are cores."""
    def with_all(check):
        with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            combinations = [()]
            for items in lists:
                combinations = [(*before, item) for before in combinations for item in items]
            problems = [problem for found in pool.map(lambda items: check(folder, *items), combinations)
                        for problem in found]
        return problems
    return with_all


def compiled(folder, source, arch, *options):
    """The path of the cubin and what the compiler said."""
    name = re.sub(r"\W", "_", "_".join((source, arch, *options)))
    path = os.path.join(folder, name + ".cubin")
    done = run(os.environ["IKET_NVCC"], "-std=c++20", "-arch=sm_" + arch, "-O3", "-lineinfo", "-cubin",
               "-I" + os.environ["IKET_INCLUDE"], *options, "-o", path, os.path.join(TESTS, source))
    return path, done.stdout if done.returncode else ""


def words(path):
    """(address, text, low, high) of each instruction, by section."""
    done = run(os.environ["IKET_NVDISASM"], "-c", "-ndf", "-hex", path)
    if done.returncode:
        raise AssertionError(done.stdout)
    sections = {}
    for part in done.stdout.split("\t.section\t")[1:]:
        name = part.split(",", 1)[0]
        found = [(int(at, 16), text, int(low, 16), int(high, 16)) for at, text, low, high in WORD.findall(part)]
        if found:
            sections[name] = found
    return sections


class OffTest(unittest.TestCase):
    def test_off_is_free(self):
        """Without IKET_ENABLE machine code and registers are those of a source without marks."""
        def check(folder, arch, source):
            bare, said = compiled(folder, source, arch, "-DFORMS_BARE")
            off, also_said = compiled(folder, source, arch)
            if said or also_said:
                return [f"sm_{arch} {source}: {said or also_said}"]
            with open(bare, "rb") as one, open(off, "rb") as other:
                bare, off = Cubin(one.read()), Cubin(other.read())
            return [f"sm_{arch} {source}: {what} differ" for what in ("code", "registers")
                    if getattr(bare, what) != getattr(off, what)] + \
                   [f"sm_{arch} {source}: declares {name}" for name in off.declarations]
        self.assertEqual(each(ARCHITECTURES, ["codegen/forms.cu"])(check), [])


class ZooTest(unittest.TestCase):
    def test_patched_code_disassembles(self):
        """Nothing is refused, and nvdisasm knows each word; outside of marks, exits and the entry nothing changed, nor
        did line tables."""
        self.assertEqual(each([arch for arch in ARCHITECTURES if arch != "87"], ZOO)(self.check), [])

    def test_kernels_that_use_our_registers_are_refused(self):
        """ptxas gives each kernel of sm_87 a first and a last instruction that read and write UR2."""
        with tempfile.TemporaryDirectory() as folder:
            path, said = compiled(folder, "data/patch/plain.cu", "87", "-DIKET_ENABLE")
            self.assertEqual(said, "")
            done = run(os.environ["IKET"], "info", path)
        self.assertRegex(done.stdout, r"plain .* refused: the instruction at 0x[0-9a-f]+ uses one of UR0..UR3")

    def test_options_of_the_compiler(self):
        """The same for what ptxas makes with other options, but -O0, which it refuses to be patched after."""
        options = ["-Xptxas=-O1", "-Xptxas=-O2", "--use_fast_math", "-maxrregcount=32", "-rdc=true"]
        self.assertEqual(each(["80", "90a", "120a"], ["codegen/forms.cu", "codegen/places.cu"], options)(self.check), [])

    def check(self, folder, arch, source, *options):
        where = f"sm_{arch} {source} {options}"
        path, said = compiled(folder, source, arch, "-DIKET_ENABLE", *options)
        if said:
            return [f"{where}: {said}"]
        patched = path + ".patched"
        done = run(os.environ["IKET_PATCH_CUBIN"], path, patched)
        if done.returncode:
            return [f"{where}: {done.stdout}"]
        problems = []
        old, new = words(path), words(patched)
        if not old or old.keys() != new.keys():
            return [f"{where}: sections {sorted(old)} became {sorted(new)}"]
        for section, before in old.items():
            problems += [f"{where} {section}: {text}" for text in self.compare(before, new[section])]
        with open(path, "rb") as one, open(patched, "rb") as other:
            problems += [f"{where}: {name} differs" for name in self.changed(one.read(), other.read())]
        return problems

    @staticmethod
    def compare(before, after):
        """What is wrong with a section, as text."""
        if [at for at, *_ in after] != list(range(0, 16 * len(after), 16)):
            yield "words are missing"
        for i, ((at, text, low, high), (_, new_text, new_low, new_high)) in enumerate(zip(before, after)):
            if i == 0 or (low, high) == (new_low, new_high):
                continue
            only_control = low == new_low and (high ^ new_high) & ~(CONTROL | 0xF << 58) == 0
            if re.match(MAY_CHANGE, text) or only_control:
                continue
            # Behind the last exit of a section its stub may stand in the padding.
            if any(re.match("EXIT", old) for _, old, *_ in before[max(0, i - 8):i]) and \
                    re.match(r"(BRA|NOP)", text):
                continue
            yield f"{at:#x}: '{text}' became '{new_text}'"
        for at, text, *_ in after:
            if "PMTRIG 0xe" in text:
                yield f"{at:#x}: a slot is left"
        yield from (f"{at:#x}: '{text}'" for at, text, *_ in after if "INVALID" in text or "???" in text)

    @staticmethod
    def changed(old, new):
        """Sections of debuggers that are not what they were."""
        names = [".debug_line", ".nv_debug_line_sass", ".debug_frame", ".nv_debug_ptx_txt"]
        before, after = Cubin(old).bodies, Cubin(new).bodies
        return [name for name in names if before.get(name) != after.get(name)]


if __name__ == "__main__":
    unittest.main()
