"""What the compiler makes of marks: nothing when they are off, the placeholder when they are on.

Environment: IKET_NVCC, IKET_NVDISASM, IKET_INCLUDE; IKET_NVRTC and IKET, where they are, for the tests
that need them (CMakeLists.txt registers those only then).
"""
import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from cubin import Cubin  # noqa: E402

INCLUDE = os.environ["IKET_INCLUDE"]
KERNELS = ["Mark", "MarkInt", "MarkUnsigned", "MarkFloat", "MarkBool", "MarkByte", "MarkEnum",
           "MarkLong", "MarkDouble", "MarkPointer", "PushPop", "PushPopInt", "Range", "RangeInt",
           "Token", "TokenInt", "TokenLate", "Flow", "MarkIf", "RangeIf", "Level", "RangeLevel",
           "MarkTwo", "MarkThree", "MarkFour", "MarkFourLong", "RangeTwo", "TokenLong", "TokenFour", "Lane",
           "Group", "EachLane", "Sync", "Dag"]
ARCH = "sm_90"


def fnv(kind, payload, name, attributes=b""):
    """The id of an event, from docs/placeholder.md."""
    value = 0x811C9DC5
    for byte in bytes([kind, payload]) + name.encode() + attributes:
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value & 0x7FFFFFFF or 1


def declaration(kind, payload, name, *attributes):
    """Attributes are (what, number, text). Words of values, and a token's, are stored inverted."""
    if payload or kind == 6:
        payload |= 0x80
    said = b"".join(bytes([what, number, len(text), 0]) + text for what, number, text in attributes)
    size = len(said).to_bytes(4, "little") if said else b""
    return (b"IKET" + bytes([16 + len(size), 0, kind, payload]) + fnv(kind, payload, name, said).to_bytes(4, "little")
            + len(name).to_bytes(4, "little") + size + name.encode() + b"\0" + said)


def values(*named):
    """Attributes of values: the name of the first, and type and name of the others."""
    return ((1, 0, named[0]), *((2, number, name) for number, name in named[1:]))


EDGE = 10  # the kind of a declaration that is no event's
DECLARED = {declaration(*event) for event in [
    (0, 0, "k"), *((0, payload, "k") for payload in (2, 3, 5, 6, 7, 13, 14, 15, 64)), (1, 0, "load"), (1, 5, "load"), (2, 0, ""),
    (3, 0, "mma"), (3, 5, "mma"), (4, 0, "mma"), (5, 0, "tile"), (6, 0, "tile"), (5, 5, "tile"), (6, 5, "tile"),
    (5, 0, "late"), (6, 0, "late"), (7, 5, "full"), (8, 5, "full"),
    (0, 5, "k", *values(b"i", (5, b"n"))), (0, 5, "k", *values(b"i", (7, b"n"), (13, b"x"))),
    (0, 5, "k", *values(b"a", (5, b"b"), (13, b"c"), (5, b"d"))),
    (0, 7, "k", *values(b"a", (14, b"b"), (15, b"c"), (16, b"d"))),
    (3, 5, "mma", *values(b"i", (5, b"n"))), (5, 7, "tile"), (6, 7, "tile"),
    *((kind, 7, "k", *values(b"a", (14, b"b"), (7, b"c"), (5, b"d"))) for kind in (5, 6)),
    *((kind, payload, "mma", (5, 0, b"wgmma"), (4, 0, b"\xaa\x77\x44\0")) for kind, payload in ((3, 5), (4, 0))),
    *((kind, payload, "load", (6, 0, b"producer")) for kind, payload in ((3, 5), (4, 0))),
    (0, 0, "mma", (6, 0, b"producer")), (0, 2, "mma", *values(b"lane", (5, b"value"))), (9, 6, "sync"),
    (EDGE, 0, "load", (7, 0, b"mma"), (8, 0, b"smem[s]"), (9, 0, b"wgmma"), (10, 0, b"producer"))]}


class CodegenTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def compile(self, source, *options):
        """The path of the cubin."""
        path = os.path.join(self.folder, "out.cubin")
        arch = [] if any(option.startswith("-arch=") for option in options) else ["-arch=" + ARCH]
        subprocess.run([os.environ["IKET_NVCC"], *arch, "-O3", "-I" + INCLUDE, "-cubin",
                        "--Werror=all-warnings", *options, "-o", path,
                        os.path.join(HERE, source)], check=True, timeout=300)
        return path

    def forms(self, *options):
        with open(self.compile("forms.cu", *options), "rb") as file:
            return Cubin(file.read())


class OffTest(CodegenTest):
    def test_off_is_free(self):
        """Without IKET_ENABLE machine code and registers are those of a source without marks."""
        bare = self.forms("-std=c++20", "-DFORMS_BARE")
        for standard in ("-std=c++20", "-std=c++17"):
            off = self.forms(standard)
            self.assertEqual(off.declarations, set())
            for kernel in KERNELS:
                with self.subTest(kernel, standard=standard):
                    self.assertEqual(off.code[kernel], bare.code[kernel])
                    self.assertEqual(off.registers[kernel], bare.registers[kernel])

    def test_debug_builds_leave_marks_out(self):
        """ptxas crashes on marks with -G, so the header leaves them out, and says so."""
        path = os.path.join(self.folder, "debug.cubin")
        done = subprocess.run([os.environ["IKET_NVCC"], "-arch=" + ARCH, "-G", "-DIKET_ENABLE",
                               "-std=c++20", "-I" + INCLUDE, "-cubin", "-o", path,
                               os.path.join(HERE, "forms.cu")], stderr=subprocess.PIPE, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"cannot be built with -G", done.stderr)
        with open(path, "rb") as file:
            self.assertEqual(Cubin(file.read()).declarations, set())


class OnTest(CodegenTest):
    def test_both_standards_give_the_same_code(self):
        new, old = self.forms("-std=c++20", "-DIKET_ENABLE"), self.forms("-std=c++17", "-DIKET_ENABLE")
        self.assertEqual(new.declarations, DECLARED)
        self.assertEqual(old.declarations, DECLARED)
        for kernel in KERNELS:
            self.assertEqual(new.code[kernel], old.code[kernel], kernel)
            self.assertEqual(new.registers[kernel], old.registers[kernel], kernel)

    def kernels(self):
        """(name, instructions as text) of every kernel, marks on."""
        path = self.compile("forms.cu", "-std=c++20", "-DIKET_ENABLE")
        text = subprocess.run([os.environ["IKET_NVDISASM"], "-c", path], check=True, timeout=120,
                              stdout=subprocess.PIPE).stdout.decode()
        for kernel in KERNELS:
            code = text.split(f".text.{kernel}:", 1)[1].split("\t.section\t", 1)[0]
            yield kernel, re.findall(r"/\*[0-9a-f]{4,}\*/\s+([^;]*\S)\s*;", code)

    def test_sequence(self):
        """Slot (with a payload), clock, comparison, guarded store, slot: in this order. With more values a slot before
        the store, and behind it slot and store once more."""
        for kernel, words in self.kernels():
            with self.subTest(kernel):
                self.check_sites(words, least=0 if kernel == "Dag" else 1)

    def check_sites(self, words, least):
        clock = guard = None
        wide, stored, more, sites = False, False, False, 0
        for word in words:
            store = re.match(r"@!?P(\d) STS\.(64|128) \[.*-0x(8|10)\], R(\d+)", word)
            compare = re.match(r"ISETP\.(?:NE|EQ)\.U32\.AND P(\d), PT, (.*), (.*), PT", word)
            read = re.match(r"CS2R\.32 R(\d+), SR_CLOCKLO", word)
            if word == "PMTRIG 0xe200":
                self.assertFalse(wide or clock, word)
                wide = True
            elif read:
                clock = read[1]
            elif compare and clock and f"R{clock}" in compare.groups():
                guard = compare[1]
            elif word == "PMTRIG 0xe310":
                self.assertTrue(wide and not more and not stored, word)
                more = True
            elif word == "PMTRIG 0xe400":
                self.assertTrue(stored and more, word)
                more = stored = False
                clock = None  # the stores behind the first have a copy
            elif store:
                self.assertFalse(stored, word)
                self.assertEqual(store.groups()[:3], (guard, *(("128", "10") if wide else ("64", "8"))))
                self.assertIn(clock, (None, store[4]))
                stored = True
                clock = store[4]
            elif word == "PMTRIG 0xe110":
                self.assertTrue(stored and not more, word)
                clock = guard = None
                wide = stored = False
                sites += 1
            else:
                self.assertNotRegex(word, "PMTRIG")
                self.assertNotRegex(word, r"^(@\S+ )?(STS|ST\.|STL|BRA|EXIT|RET)" if wide or clock
                                    else r"^(@\S+ )?(STS|ST\.|STL)")
                # ptxas gives UR0..UR3 to nobody: they are the ring's.
                self.assertNotRegex(word, r"\bUR[0-3]\b")
        self.assertFalse(wide or clock or stored)
        self.assertGreaterEqual(sites, least)

    def test_payload_stores(self):
        """As many payload stores as declared payloads; none where there are none."""
        for kernel, words in self.kernels():
            sites = words.count("PMTRIG 0xe110")
            payloads = words.count("PMTRIG 0xe200")
            more = {"MarkTwo": 0, "MarkThree": 1, "MarkFour": 1, "MarkFourLong": 3, "RangeTwo": 0, "TokenLong": 0.5,
                    "TokenFour": 3}.get(kernel, 0) * payloads
            self.assertEqual(words.count("PMTRIG 0xe400"), more, kernel)
            self.assertEqual(words.count("PMTRIG 0xe310"), more, kernel)
            self.assertEqual(sum("STS.128" in word for word in words), payloads + more, kernel)
            if kernel == "TokenLate":  # of whose ends one is behind the loop
                self.assertEqual(payloads - 1, sites - payloads)
                continue
            expected = {"Mark": 0, "PushPop": 0, "Range": 0, "PushPopInt": sites / 2,
                        "RangeInt": sites / 2, "RangeIf": sites / 2, "RangeLevel": sites / 2, "Token": sites / 2,
                        "RangeTwo": sites / 2, "Lane": sites / 2, "Group": sites / 3}.get(kernel, sites)
            self.assertEqual(payloads, expected, kernel)


    def test_levels(self):
        """What is above IKET_LEVEL is not in the code."""
        bare = self.forms("-std=c++20", "-DFORMS_BARE")
        for standard in ("-std=c++20", "-std=c++17"):
            full = self.forms(standard, "-DIKET_ENABLE")
            one = self.forms(standard, "-DIKET_ENABLE", "-DIKET_LEVEL=1")
            for kernel in KERNELS:
                with self.subTest(kernel, standard=standard):
                    expected = bare if kernel == "RangeLevel" else full
                    self.assertEqual(one.code[kernel], expected.code[kernel])
            none = self.forms(standard, "-DIKET_ENABLE", "-DIKET_LEVEL=-1")
            self.assertEqual(none.declarations, set())
            for kernel in KERNELS:
                if kernel not in ("MarkIf", "RangeIf", "Group"):  # their conditions stay
                    self.assertEqual(none.code[kernel], bare.code[kernel], kernel)


class WrongUseTest(CodegenTest):
    """Wrong use ends the build, or warns, with a sentence; right use is silent on both sides."""
    LITERAL = r'iket: a name is a string literal, and nothing else: IKET_MARK\(\\?"load\\?"\)'
    FOUR_VALUES = "iket: an event has at most four values"

    def build(self, body, *options, function="__global__"):
        """What the compilers of device and host code say about a function of that body."""
        path = os.path.join(self.folder, "use.cu")
        with open(path, "w", encoding="utf-8") as file:
            file.write("#include <iket/iket.cuh>\nusing namespace iket::literals;\n"
                       f"{function} void Use() {{ {body} }}\n")
        return subprocess.run([os.environ["IKET_NVCC"], "-arch=" + ARCH, "-I" + INCLUDE, "-DIKET_ENABLE",
                               "-Xcompiler=-Wall,-Wextra", *options, "-c", "-o", os.devnull, path],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)

    def test_macros(self):
        for body, sentence in [
                ("IKET_MARK();", self.LITERAL), ("IKET_PUSH();", self.LITERAL), ("IKET_RANGE();", self.LITERAL),
                ('const char* s = "a"; IKET_MARK(s);', self.LITERAL),
                ('const char* s = "a"; IKET_RANGE(s, 1);', self.LITERAL),
                ('IKET_MARK("a", 1, 2, 3, 4, 5);', self.FOUR_VALUES),
                ('IKET_RANGE("a", 1, 2, 3, 4, 5, 6);', self.FOUR_VALUES),
                ('IKET_PUSH("a", 1, 2, 3, 4, 5, 6, 7, 8);', self.FOUR_VALUES)]:
            with self.subTest(body):
                done = self.build(body, "-std=c++17")
                self.assertNotEqual(done.returncode, 0)
                first = re.search("error.*", done.stdout)
                self.assertRegex(first[0], sentence)

    def test_values_and_rows(self):
        """Several values have a name each; pushes have no rows of their own; colours are colours."""
        names = "iket: several values need a name each, and each name a value"
        for body, sentence in [
                ('iket::mark("a"_ev, 1, 2);', names), ('iket::mark("a"_ev("m"_ev), 1, 2);', names),
                ('iket::mark("a"_ev("m"_ev, "n"_ev), 1);', names), ('iket::mark("a"_ev("m"_ev));', names),
                ('iket::range r{"a"_ev("m"_ev, "n"_ev)};', names),
                ('iket::mark("a"_ev("m"_ev, "n"_ev, "o"_ev, "p"_ev, "q"_ev), 1, 2, 3, 4, 5);', self.FOUR_VALUES),
                ('iket::mark("a"_ev("m"), 1);', "iket: a value's name is a literal with _ev behind it"),
                ('struct S {}; iket::mark("a"_ev, S{});', "iket: a payload is numbers"),
                ('iket::push("a"_ev | iket::lane("b"_ev));', "a pop has no name, so that a push has no lane"),
                ('iket::mark("a"_ev | iket::colour<0x1000000>());', "iket: a colour is a number like 0x4477aa"),
                ('iket::dag("a"_ev).edge("b"_ev, "c");', "iket: an edge leads from a name to another"),
                ('iket::mark("a"_ev | iket::lane("b"));', "iket: a name is a literal with _ev behind it"),
                ('iket::dag("a").edge("b"_ev, "c"_ev);', "iket: a name is a literal with _ev behind it"),
                ('iket::group g{"a"_ev, true}; iket::range r{g, "b"_ev};', "marks and range_if take a group or only_if"),
                ('iket::mark_each_lane("a"_ev, 1, 2, 3, 4);', "the lane's number is a value, so that three are left"),
                ('iket::group g{"a"_ev, true}; iket::group h{"b"_ev, true}; auto t = iket::start(g, "c"_ev); iket::end(h, t);',
                 "the range of this token is not of this group"),
                ('iket::mark("a"_ev("m"_ev)("n"_ev), 1);', "deleted"),
                ('iket::group g{"a", true};', "iket: a name is a literal with _ev behind it")]:
            with self.subTest(body):
                done = self.build(body, "-std=c++20")
                self.assertNotEqual(done.returncode, 0)
                self.assertRegex(done.stdout, sentence)

    def test_tokens(self):
        """Both ends of a token's range have a payload of one type, or none; another name's token is no token; ids of
        flows are no real numbers."""
        same = "iket: the end of a range has a payload if its start has one, of the same type"
        for body, sentence in [
                ('auto t = iket::start("a"_ev, 1); iket::end(t);', same),
                ('auto t = iket::start("a"_ev); iket::end(t, 1);', same),
                ('auto t = iket::start("a"_ev, 1); iket::end(t, 1u);', same),
                ('iket::flow_out("a"_ev, 1.0f);', "the id of a flow is an integer or pointer"),
                ('auto t = iket::sentinel<const int>("a"_ev); static_cast<void>(t);', "neither const nor more"),
                ('auto t = iket::sentinel<char>("a"_ev); t = iket::start("a"_ev, 1);', "payload is of another type"),
                ('auto t = iket::sentinel("a"_ev); t = iket::start("b"_ev);', "no operator .?=|no viable overloaded '='")]:
            with self.subTest(body):
                done = self.build(body, "-std=c++20")
                self.assertNotEqual(done.returncode, 0)
                self.assertRegex(done.stdout, sentence)
        done = self.build('iket::start("a"_ev);', "-std=c++20")
        self.assertRegex(done.stdout, "warning.*(nodiscard|discard)")

    def test_unnamed_range(self):
        for standard, range_ in [("20", '{"a"_ev}'), ("20", '("a"_ev, 1)'), ("17", "{iket_name{}}")]:
            with self.subTest(range_, standard=standard):
                body = 'struct iket_name { __host__ __device__ static constexpr int size() { return 0; } ' \
                       '__host__ __device__ static constexpr char at(int) { return 0; } };' \
                    if standard == "17" else ""
                done = self.build(f"{body} iket::range{range_};", "-std=c++" + standard)
                self.assertEqual(done.returncode, 0, done.stdout)
                self.assertRegex(done.stdout, "warning.*nodiscard")

    def test_right_use_is_silent(self):
        marks = 'IKET_MARK("a"); IKET_MARK("", 1); IKET_MARK("a" "b", 2u); IKET_MARK("say \\"hi\\""); ' \
                'IKET_MARK(__FILE__); IKET_MARK(R"(raw)"); IKET_RANGE("c"); IKET_RANGE("d", 1.0f); ' \
                'IKET_PUSH("e"); IKET_POP(); IKET_TOKEN(t, "f"); IKET_START(t); IKET_END(t); ' \
                'IKET_MARK("h", 1, 2.0); IKET_RANGE("i", 1, 2, 3, 4); IKET_NAME(name, "j", m, n); ' \
                'iket::mark(name, 1, 2); IKET_NAME(plain, "k"); iket::mark(plain); ' \
                'IKET_TOKEN(u, "g", float); IKET_START(u, 1.0f); IKET_END(u, 2.0f);'
        events = 'iket::range r{"a"_ev}; const iket::range q("b"_ev, 1); iket::mark("c"_ev);' \
                 'auto v = iket::sentinel<int>("d"_ev); v = iket::start("d"_ev, 1); iket::end(v, 2);' \
                 'iket::mark("e"_ev("m"_ev, "n"_ev), 1, 2.0); const iket::group g{"f"_ev, true};' \
                 'iket::range_if s{g, "g"_ev, 1}; iket::mark(g, "h"_ev); iket::sync();' \
                 'iket::range z{"i"_ev | iket::lane("j"_ev) | iket::colour<0xff8000>() | iket::category("k"_ev)};' \
                 'auto w = iket::sentinel<double, int>(g, "l"_ev("x"_ev, "y"_ev));' \
                 'w = iket::start(g, "l"_ev("x"_ev, "y"_ev), 1.0, 2); iket::end(g, w, 3.0, 4);' \
                 'iket::mark(("r"_ev | iket::lane("s"_ev))("t"_ev, "u"_ev), 1, 2);' \
                 'iket::mark(iket::level<2>("v"_ev | iket::category("w"_ev))("x"_ev), 1);' \
                 'iket::flow_out(g, "m"_ev, 1); iket::flow_in(g, "m"_ev, 1); iket::mark_each_lane("n"_ev, 1);' \
                 'iket::dag("o"_ev).edge("g"_ev, "i"_ev, iket::label("p"_ev), iket::via("q"_ev)).edge("i"_ev, "h"_ev);'
        for standard, body in [("17", marks), ("20", marks + events)]:
            for function in ("__global__", "__host__ __device__", "__host__"):
                with self.subTest(function, standard=standard):
                    done = self.build(body, "-std=c++" + standard, function=function)
                    self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_older_standard(self):
        """One error, and not those that would follow from it."""
        done = self.build('IKET_MARK("a");', "-std=c++14")
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(re.findall(r"error: #error (.*)", done.stdout),
                         ['"iket: marks need C++17: build with -std=c++17 or later"'])
        self.assertEqual(done.stdout.count("error: "), 1, done.stdout)


class NvrtcTest(CodegenTest):
    def test_nvrtc(self):
        """The header alone, without a search path, compiles at run time and declares the same."""
        nvrtc = ctypes.CDLL(os.environ["IKET_NVRTC"])
        with open(os.path.join(HERE, "forms.cu"), "rb") as file:
            source = file.read()
        with open(os.path.join(INCLUDE, "iket", "iket.cuh"), "rb") as file:
            header = file.read()
        program = ctypes.c_void_p()
        texts, names = (ctypes.c_char_p * 1)(header), (ctypes.c_char_p * 1)(b"iket/iket.cuh")
        self.assertEqual(nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"forms.cu", 1,
                                                  texts, names), 0)
        for standard in (b"-std=c++20", b"-std=c++17"):
            options = [b"--gpu-architecture=" + ARCH.encode(), standard, b"-DIKET_ENABLE"]
            failed = nvrtc.nvrtcCompileProgram(program, len(options),
                                               (ctypes.c_char_p * len(options))(*options))
            size = ctypes.c_size_t()
            nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            nvrtc.nvrtcGetProgramLog(program, log)
            self.assertEqual(failed, 0, log.value.decode())
            self.assertEqual(log.value, b"")
            self.assertEqual(nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)), 0)
            image = ctypes.create_string_buffer(size.value)
            self.assertEqual(nvrtc.nvrtcGetCUBIN(program, image), 0)
            self.assertEqual(Cubin(image.raw).declarations, DECLARED)
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


class InfoTest(CodegenTest):
    def info(self, path):
        done = subprocess.run([os.environ["IKET"], "info", "--sites", "--json", path], check=True,
                              timeout=120, stdout=subprocess.PIPE)
        image, = json.loads(done.stdout)["images"]
        self.assertEqual(image["problem"], "")
        self.assertEqual(image["problems"], [])
        return image

    def test_placeholder_by_hand(self):
        """PTX written from docs/placeholder.md is found, site by site, and would be traced."""
        image = self.info(self.compile("placeholder.ptx"))
        found = sorted((row["name"], row["kind"], row["payload"], row["id"])
                       for row in image["declarations"])
        self.assertEqual(found, [("hello", "mark", "", fnv(0, 0, "hello")),
                                 ("step", "push", "i32", fnv(1, 5, "step"))])
        function, = image["functions"]
        self.assertEqual(function["name"], "by_hand")
        self.assertEqual(function["refusal"], "")
        sites = [site["payload"] for site in function["sites"]]
        self.assertEqual(sites.count(False), sites.count(True))
        self.assertGreater(len(sites), 1)

    def test_every_form_is_found(self):
        self.check_forms()

    def test_every_form_is_found_before_linking(self):
        self.check_forms("-rdc=true")

    def test_places(self):
        """With -lineinfo a mark stands where its name does in the source, also in unrolled code, in functions that are
        inlined and, behind a wrapper, at the wrapper's caller; without, nowhere."""
        with open(os.path.join(HERE, "places_of_marks.cu"), encoding="utf-8") as file:
            source = file.read().splitlines()
        line_of = {name: i + 1 for i, line in enumerate(source) for name in re.findall(r'"(\w+)"_ev', line)}
        self.assertEqual(len(line_of), 8)
        for arch in ("sm_80", "sm_90", "sm_100a"):
            image = self.info(self.compile("places_of_marks.cu", "-std=c++20", "-DIKET_ENABLE", "-lineinfo",
                                           "-arch=" + arch))
            with self.subTest(arch):
                for row in image["declarations"]:
                    if row["kind"] in ("mark", "push", "range begin", "token begin"):
                        self.assertEqual(row["line"], line_of[row["name"]], row)
                        self.assertTrue(row["file"].endswith("/places_of_marks.cu"), row)
                names = {row["id"]: row for row in image["declarations"]}
                known = [site for function in image["functions"] for site in function["sites"] if site["line"]]
                for site in known:
                    row = names[site["event"]]
                    if row["kind"] in ("mark", "push", "range begin", "token begin"):
                        self.assertEqual(site["line"], line_of[row["name"]], row)
                self.assertGreater(len(known), 12)
        image = self.info(self.compile("places_of_marks.cu", "-std=c++20", "-DIKET_ENABLE"))
        self.assertEqual({row["line"] for row in image["declarations"]}, {0})

    def check_forms(self, *options):
        image = self.info(self.compile("forms.cu", "-std=c++20", "-DIKET_ENABLE", *options))
        self.assertEqual({row["id"] for row in image["declarations"]},
                         {int.from_bytes(bytes_[8:12], "little") for bytes_ in DECLARED if bytes_[6] != EDGE})
        self.assertEqual([(edge["dag"], edge["from"], edge["to"], edge["label"], edge["via"]) for edge in image["edges"]],
                         [("producer", "load", "mma", "smem[s]", "wgmma")])
        functions = {row["name"]: row for row in image["functions"]}
        for kernel in KERNELS:
            self.assertEqual(functions[kernel]["refusal"], "")
            self.assertEqual(bool(functions[kernel]["sites"]), kernel != "Dag")


if __name__ == "__main__":
    unittest.main()
