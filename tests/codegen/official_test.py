"""Marks built with IKET_COMPAT=official: the metadata, word by word, and the placeholders of NVIDIA's IKET.

The parser here is of its own, from docs/design/compat.md. Environment: that of codegen_test.py; IKET_NVLINK; for
LinkTest's -dlto also IKET_NVVM and IKET_CUDA_LIB.
"""
import ctypes
import os
import re
import struct
import subprocess
import unittest

import clang_test
import codegen_test
from codegen_test import HERE, INCLUDE
from cubin import Cubin

NATIVE, EXTENDED = 3, 5
METHODS = ((NATIVE, []), (EXTENDED, ["-DIKET_COMPAT_EXTENDED"]))
MARK, PUSH, TOKEN = 0, 1, 4  # positions
START_END, PUSH_POP = 1, 2
POP = 31
AUTO = 0xFFFFFFFF

# (name, position, payload) of each event of official.cu, and the ranges of that file.
EVENTS = {("plain", MARK, 0), ("i8", MARK, 1), ("u8", MARK, 2), ("i16", MARK, 3), ("u16", MARK, 4), ("i32", MARK, 5),
          ("u32", MARK, 6), ("i64", MARK, 7), ("f32", MARK, 13), ("f64", MARK, 14), ("pointer", MARK, 15),
          ("u64", MARK, 16), ("enum", MARK, 3), ("odd one:\t\u00e4 of 32 bytes, no more", MARK, 5), ("lanes", MARK, 2),
          ("named", MARK, 5), ("pushed", PUSH, 0), ("range", PUSH, 0), ("range", PUSH, 5), ("blue", PUSH, 5),
          ("token", TOKEN, 0), ("tile", TOKEN, 7), ("late", TOKEN, 0)}
RANGES = {("pushed", PUSH_POP, AUTO), ("range", PUSH_POP, AUTO), ("blue", PUSH_POP, 0x4477AA),
          ("token", START_END, AUTO), ("tile", START_END, AUTO), ("late", START_END, AUTO)}
WIDE = (7, 14, 15, 16)
# Names of the events in each kernel of official.cu, and whether it has a pop.
KERNELS = {"Mark": "plain", "MarkI8": "i8", "MarkU8": "u8", "MarkI16": "i16", "MarkU16": "u16", "MarkI32": "i32",
           "MarkU32": "u32", "MarkI64": "i64", "MarkU64": "u64", "MarkF32": "f32", "MarkF64": "f64",
           "MarkPointer": "pointer", "MarkEnum": "enum", "MarkConstant": "i32", "PushPop": "pushed", "Range": "range",
           "RangeI32": "range", "RangeIf": "range", "MarkIf": "odd one:\t\u00e4 of 32 bytes, no more",
           "Token": "token", "TokenI64": "tile", "TokenLate": "late", "Coloured": "blue", "EachLane": "lanes",
           "Named": "named", "Ignored": None}


def fnv(name):
    value = 0x811C9DC5
    for byte in name.encode():
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value


def name_of(size, field):
    """A name of 32 bytes, whose size has no NUL and behind which are zeros."""
    assert 0 < size <= 32 and field[size:] == bytes(32 - size), (size, field)
    return field[:size].decode()


class Metadata:
    """All of a cubin's, checked as it is read."""

    def __init__(self, cubin):
        self.events, self.ranges, self.header = {}, set(), None
        for symbol, data in cubin.objects.items():
            if symbol == "__iket_meta_info":
                self.header = struct.unpack("<12I", data)
            elif event := re.fullmatch(r"__iket_evt_decl_id_(\d+)_attrs", symbol):
                size, number, method, payload, position, range_id, length = struct.unpack_from("<7I", data)
                assert size == len(data) == 60 and number == int(event[1]), symbol
                name = name_of(length, data[28:])
                assert range_id == (0 if position == MARK else fnv(name)), symbol
                self.events[number] = (name, position, payload)
                self.method = method
            elif re.fullmatch(r"__iket_range_decl_id_\w+_attrs", symbol):
                size, scope, number, colour, form, mode, low, high, length = struct.unpack_from("<9I", data)
                name = name_of(length, data[36:68])
                assert size == len(data) == 72 and scope == low == high == 0 and data[68:] == bytes(4), symbol
                assert number == fnv(name) and mode == (1 if form == START_END else 0), symbol
                self.ranges.add((name, form, colour))
            else:
                assert "__iket" not in symbol, symbol
        last = 31 if self.method == NATIVE else 4095
        assert self.header == (48, 0, 5, last, 32, 60, 0xBABEF19D, 0, 3, 0, 0, 0), self.header


class OfficialTest(codegen_test.CodegenTest):
    OFFICIAL = ("-DIKET_ENABLE", "-DIKET_COMPAT=official")

    def official(self, *options, source="official.cu"):
        """(path, cubin, metadata)."""
        path = self.compile(source, *self.OFFICIAL, *options)
        with open(path, "rb") as file:
            cubin = Cubin(file.read())
        return path, cubin, Metadata(cubin)

    def functions(self, path):
        """(name, instructions as text) of every function."""
        text = subprocess.run([os.environ["IKET_NVDISASM"], "-c", path], check=True, timeout=120,
                              stdout=subprocess.PIPE).stdout.decode()
        for part in re.split(r"^\.text\.", text, flags=re.MULTILINE)[1:]:
            name, code = part.split(":", 1)
            yield name, re.findall(r"/\*[0-9a-f]{4,}\*/\s+([^;]*\S)\s*;", code.split("\t.section\t", 1)[0])

    def sites(self, words, metadata):
        """The ids of a function's triggers, in front of each of which what belongs to it stands."""
        found, first = [], 0
        for at, word in enumerate(words):
            trigger = re.fullmatch(r"(@!?U?P\d )?PMTRIG 0x([0-9a-f]+)", word.strip())
            if trigger:
                found.append(int(trigger[2], 16))
                self.check_site(words[first:at], found[-1], metadata)
                first = at + 1
        return found

    def check_site(self, words, number, metadata):
        payload = 0 if number == POP else metadata.events[number][2]
        text = "\n".join(words)
        start = max(i for i, word in enumerate(words) if "SR_GLOBALTIMERLO" in word)
        timer, = re.findall(r"(?:CS2R\.32|S2R|CS2R) R(\d+), SR_GLOBALTIMERLO", words[start])
        stores = []  # (guard, width, register of the address, offset, register of what is stored)
        for word in words[start:]:
            store = re.fullmatch(r"(?:(@!?P\d+) +)?STS(?:\.(64|128))? \[(U?R[Z\d]*)(?:\+0x([0-9a-f]+))?\], R(\d+|Z)", word)
            if store:
                stores.append((store[1], store[2], store[3], int(store[4] or "0", 16), store[5]))
            else:
                self.assertNotRegex(word, r"\b(STS|ST\.|BRA|EXIT|RET)", text)
        if metadata.method == NATIVE:
            merged = re.findall(rf"LOP3\.LUT R(\d+), R{timer}, {number:#x}, RZ, 0xfc", "\n".join(words[start:]))
            self.assertEqual(len(merged), 1, text)
            stored, width, at = merged[0], None, 8 if payload in WIDE else 4
        else:
            stored, width, at = timer, "64", 8
        times = [store for store in stores if store[1] == width and store[4] == stored]
        self.assertTrue(times, text)
        time = times[0]
        self.assertEqual(len(stores), 2 if payload else 1, text)
        if payload:
            value, = (store for store in stores if store is not time)
            elected = re.findall(r"ELECT (P\d), URZ, PT", text)
            self.assertEqual({time[0], value[0]}, {"@" + elected[-1]}, text)
            self.assertEqual(value[1], "64" if payload in WIDE else None, text)
            self.assertEqual(self.offset(value, words) - self.offset(time, words), at, text)

    def offset(self, store, words):
        """In the CTA's window: the register has the window's begin, or that of the place, 0x3f0."""
        return store[3] if store[3] >= 0x3F0 else 0x3F0 + store[3]

    def check(self, path, metadata, events=None, ranges=None, kernels=None):
        first = 1 if metadata.method == NATIVE else 64
        self.assertEqual(sorted(metadata.events), list(range(first, first + len(metadata.events))))
        self.assertEqual(sorted(metadata.events.values()), sorted(events or EVENTS))
        self.assertEqual(metadata.ranges, ranges or RANGES)
        for name, words in self.functions(path):
            with self.subTest(name):
                found = set(self.sites(words, metadata))
                event = (kernels or KERNELS)[name]
                self.assertEqual({metadata.events[number][0] for number in found - {POP}}, {event} - {None})
                is_stacked = {metadata.events[number][1] for number in found - {POP}} == {PUSH}
                self.assertEqual(POP in found, is_stacked)
                ends = len(re.findall(f"PMTRIG {POP:#x}", "\n".join(words)))
                self.assertEqual(ends > 0, is_stacked)


class FormsTest(OfficialTest):
    def test_forms(self):
        """Both standards, both methods, each level of optimisation."""
        for standard in ("-std=c++17", "-std=c++20"):
            for method, options in METHODS:
                for level in ("-O1", "-O2", "-O3"):
                    with self.subTest(standard, method=method, level=level):
                        path, _, metadata = self.official(standard, *options, "-Xptxas=" + level)
                        self.assertEqual(metadata.method, method)
                        self.check(path, metadata)

    def test_architectures(self):
        for arch in ("sm_90a", "sm_100", "sm_103a", "sm_110", "sm_120", "sm_121a"):
            for method, options in METHODS:
                with self.subTest(arch, method=method):
                    path, _, metadata = self.official("-std=c++20", "-arch=" + arch, *options)
                    self.assertEqual(metadata.method, method)
                    self.check(path, metadata)

    def test_line_numbers(self):
        path, _, metadata = self.official("-std=c++20", "-lineinfo")
        self.check(path, metadata)

    def test_before_hopper(self):
        """NVIDIA's IKET has nothing before sm_90: marks are left out, with a warning."""
        path = os.path.join(self.folder, "old.cubin")
        done = subprocess.run([os.environ["IKET_NVCC"], "-arch=sm_89", *self.OFFICIAL, "-std=c++20", "-I" + INCLUDE, "-cubin",
                               "-o", path, os.path.join(HERE, "official.cu")], stderr=subprocess.PIPE, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"NVIDIA's IKET needs sm_90 or later", done.stderr)
        bare = self.compile("official.cu", "-std=c++20", "-arch=sm_89", "-DFORMS_BARE")
        with open(path, "rb") as one, open(bare, "rb") as other:
            old, none = Cubin(one.read()), Cubin(other.read())
        self.assertEqual(old.objects, none.objects)
        for kernel in KERNELS:
            if kernel not in ("MarkIf", "RangeIf"):  # their conditions stay
                self.assertEqual(old.code[kernel], none.code[kernel], kernel)

    def test_off_is_free(self):
        bare = self.compile("official.cu", "-std=c++20", "-DFORMS_BARE")
        with open(bare, "rb") as file:
            none = Cubin(file.read())
        off = self.compile("official.cu", "-std=c++20", "-DIKET_COMPAT=official")
        with open(off, "rb") as file:
            off = Cubin(file.read())
        self.assertEqual(off.objects, none.objects)
        for kernel in KERNELS:
            self.assertEqual(off.code[kernel], none.code[kernel], kernel)
            self.assertEqual(off.registers[kernel], none.registers[kernel], kernel)

    def written(self, marks, *options):
        """Of a kernel with these marks."""
        source = os.path.join(self.folder, "many.cu")
        with open(source, "w", encoding="utf-8") as file:
            file.write('#include <iket/iket.cuh>\nusing namespace iket::literals;\n'
                       f'extern "C" __global__ void Many(int n) {{ {marks} }}\n')
        return self.official("-std=c++20", *options, source=source)

    def test_as_many_as_there_is_room_for(self):
        for options, count, method in (([], 30, NATIVE), (["-DIKET_COMPAT_EXTENDED"], 31, EXTENDED),
                                       (["-DIKET_COMPAT_EXTENDED"], 300, EXTENDED)):
            with self.subTest(count):
                marks = "".join(f'iket::mark("name {i}"_ev); iket::mark("name {i}"_ev);' for i in range(count))
                path, _, metadata = self.written(marks, *options)
                self.assertEqual(metadata.method, method)
                # One after the other, in the order of the source.
                first = min(metadata.events)
                self.assertEqual([metadata.events[first + i][0] for i in range(count)], [f"name {i}" for i in range(count)])
                (_, words), = self.functions(path)
                self.assertEqual(self.sites(words, metadata), [first + i // 2 for i in range(2 * count)])

    def test_wherever_code_can_stand(self):
        """Names are numbered as templates, lambdas and functions are instantiated, each once. A name that both standards
        spell is one; one in code that nobody calls is declared, too."""
        source = os.path.join(self.folder, "places.cu")
        with open(source, "w", encoding="utf-8") as file:
            file.write("""#include <iket/iket.cuh>
using namespace iket::literals;
template <typename T, int Count>
__device__ T Sum(const T* in) {
  iket::range r{"sum"_ev, Count};
  T sum = 0;
#pragma unroll
  for (int i = 0; i < Count; ++i) sum += in[i], iket::mark("added"_ev, sum);
  return sum;
}
__device__ __noinline__ float Separate(float x, int depth) {
  iket::mark("depth"_ev, depth);
  IKET_MARK("depth", depth);
  return depth > 0 ? Separate(x * 0.5f, depth - 1) + 1.0f : x;
}
template <typename Name>
__device__ void Through(Name name) { iket::mark(name); }
inline __device__ void Nobody() { iket::mark("nobody calls"_ev); }
template <typename T>
__global__ void Places(T* data, int n) {
  const auto each = [&](int i) { iket::mark("each"_ev, i); return data[i] * 2; };
  data[n] = each(n) + Sum<T, 4>(data) + Separate(1.0f, n);
  Through("through"_ev);
  if (threadIdx.x & 1) iket::mark("odd"_ev); else iket::mark("even"_ev, n);
}
template __global__ void Places(float*, int);
template __global__ void Places(int*, int);
""")
        path, _, metadata = self.official("-std=c++20", source=source)
        self.assertEqual(set(metadata.events.values()),
                         {("sum", PUSH, 5), ("added", MARK, 13), ("added", MARK, 5), ("depth", MARK, 5), ("each", MARK, 5),
                          ("through", MARK, 0), ("odd", MARK, 0), ("even", MARK, 5), ("nobody calls", MARK, 0)})
        found = {number for _, words in self.functions(path) for number in self.sites(words, metadata)}
        self.assertEqual({metadata.events[number] for number in found - {POP}},
                         set(metadata.events.values()) - {("nobody calls", MARK, 0)})


class NvrtcTest(OfficialTest):
    def test_nvrtc(self):
        nvrtc = ctypes.CDLL(os.environ["IKET_NVRTC"])
        texts = []
        for name in (os.path.join(HERE, "official.cu"), *(os.path.join(INCLUDE, "iket", name) for name in ("iket.cuh", "official.cuh"))):
            with open(name, "rb") as file:
                texts.append(file.read())
        program = ctypes.c_void_p()
        headers, names = (ctypes.c_char_p * 2)(*texts[1:]), (ctypes.c_char_p * 2)(b"iket/iket.cuh", b"official.cuh")
        self.assertEqual(nvrtc.nvrtcCreateProgram(ctypes.byref(program), texts[0], b"official.cu", 2, headers, names), 0)
        options = [b"--gpu-architecture=sm_90", b"-std=c++20", *(option.encode() for option in self.OFFICIAL)]
        failed = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
        size = ctypes.c_size_t()
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        self.assertEqual((failed, log.value.decode()), (0, ""))
        self.assertEqual(nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)), 0)
        image = ctypes.create_string_buffer(size.value)
        self.assertEqual(nvrtc.nvrtcGetCUBIN(program, image), 0)
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
        path = os.path.join(self.folder, "nvrtc.cubin")
        with open(path, "wb") as file:
            file.write(image.raw)
        self.check(path, Metadata(Cubin(image.raw)))


class OfficialFormsTest(clang_test.Clang, OfficialTest):
    def test_clang(self):
        for standard in ("-std=c++17", "-std=c++20"):
            for method, options in METHODS:
                with self.subTest(standard, method=method):
                    path, _, metadata = self.official(standard, *options)
                    self.assertEqual(metadata.method, method)
                    self.check(path, metadata)


class LinkTest(OfficialTest):
    """Files of one module."""
    SHARED = '__device__ __noinline__ inline void Shared(int i) { iket::range r{"shared"_ev, i}; iket::mark("in it"_ev); }\n'
    ONE = SHARED + ('extern __device__ void Other(int);\nextern "C" __global__ void One(int i) '
                    '{ iket::mark("one"_ev); iket::range r{"both"_ev}; Shared(i); Other(i); }')
    OTHER = SHARED + ('__device__ __noinline__ void Other(int i) '
                      '{ iket::mark("other"_ev, i); iket::range r{"both"_ev}; Shared(i); }')

    def link(self, units, *options, lto=False):
        """nvlink's return code and words, and the path of what it made."""
        objects = []
        for i, (unit, text) in enumerate(zip(units, (self.ONE, self.OTHER))):
            source = os.path.join(self.folder, f"{i}.cu")
            with open(source, "w", encoding="utf-8") as file:
                file.write("#include <iket/iket.cuh>\nusing namespace iket::literals;\n" + text)
            objects.append(os.path.join(self.folder, f"{i}.o"))
            arch = "-gencode=arch=compute_90,code=lto_90" if lto else "-arch=sm_90"
            given = [] if unit is None else [f"-DIKET_COMPAT_UNIT={unit}"]
            subprocess.run([os.environ["IKET_NVCC"], arch, "-std=c++20", "-I" + INCLUDE, *self.OFFICIAL, "-rdc=true",
                            "--Werror=all-warnings", *given, *options, "-c", "-o", objects[-1], source],
                           check=True, timeout=300)
        linked = os.path.join(self.folder, "linked.cubin")
        libraries = ["-dlto", "-nvvmpath=" + os.environ["IKET_NVVM"],
                     os.path.join(os.environ["IKET_CUDA_LIB"], "libcudadevrt.a")] if lto else []
        done = subprocess.run([os.environ["IKET_NVLINK"], "-m64", "--arch=sm_90", *libraries[:2], *objects, *libraries[2:], "-o", linked],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
        return done, linked

    def test_files_have_units(self):
        for lto in (False, True):
            with self.subTest(lto=lto):
                done, path = self.link((None, 39), lto=lto)
                self.assertEqual((done.returncode, done.stdout), (0, ""))
                with open(path, "rb") as file:
                    metadata = Metadata(Cubin(file.read()))
                self.assertEqual(metadata.method, EXTENDED)
                for unit in (0, 39):
                    events = {event for number, event in metadata.events.items() if (number - 64) // 100 == unit}
                    self.assertEqual(events, {("both", PUSH, 0), ("shared", PUSH, 5), ("in it", MARK, 0),
                                              ("other", MARK, 5) if unit else ("one", MARK, 0)})
                self.assertEqual(metadata.ranges, {("both", PUSH_POP, AUTO), ("shared", PUSH_POP, AUTO)})
                found = [number for _, words in self.functions(path) for number in self.sites(words, metadata)]
                names = [metadata.events[number][0] for number in found if number != POP]
                self.assertEqual(sorted(set(names)), ["both", "in it", "one", "other", "shared"])
                self.assertEqual(found.count(POP), names.count("both") + names.count("shared"))

    def test_units_that_are_alike(self):
        """The linker says which two files have one, and what to do."""
        for lto in (False, True):
            for units in ((None, None), (7, 7)):
                with self.subTest(units, lto=lto):
                    done, _ = self.link(units, lto=lto)
                    self.assertNotEqual(done.returncode, 0)
                    self.assertRegex(done.stdout, f"iket_two_files_have_IKET_COMPAT_UNIT_{units[0] or 0}_give_each_its_own")


class WrongUseTest(codegen_test.CodegenTest):
    """What NVIDIA's IKET lacks ends the build with a sentence, with IKET_COMPAT=official alone."""
    LACKS = r"iket: of NVIDIA's IKET \(IKET_COMPAT=official\) "
    CASES = [
        ('iket::mark("k"_ev, n > 0);', "a payload is an integer, float, double or pointer: cast bool and fp8 to an integer"),
        ('iket::mark("k"_ev, __half{});', "a payload is .* half and bfloat16 to float"),
        ('iket::range r{"k"_ev, __nv_bfloat16{}};', "a payload is .* half and bfloat16 to float"),
        ('iket::push("k"_ev, __nv_fp8_e4m3{}); iket::pop();', "a payload is .*: cast bool and fp8 to an integer"),
        ('iket::mark("k"_ev, __nv_fp8_e5m2{});', "a payload is .*: cast bool and fp8 to an integer"),
        ('iket::mark("k"_ev("a"_ev, "b"_ev), n, n);', "an event has one value: give one, or pack them"),
        ('IKET_MARK("k", n, n);', "an event has one value"),
        ('iket::mark_each_lane("k"_ev, n);', "an event has one value"),
        ('iket::flow_out("k"_ev, n);', "there are no flows: put marks in their place"),
        ('iket::flow_in("k"_ev, n);', "there are no flows"),
        ('iket::range r{"k"_ev | iket::lane("l"_ev)};', "lanes and groups have no rows: leave them away"),
        ('const iket::group g{"g"_ev, n == 0}; iket::mark(g, "k"_ev);', "lanes and groups have no rows"),
        ('const iket::group g{"g"_ev, n == 0}; [[maybe_unused]] auto t = iket::start(g, "k"_ev);', "lanes and groups have no rows"),
        ('iket::mark("0123456789abcdef0123456789abcdef+"_ev);', "a name has 1 to 32 bytes: shorten this one"),
        ('IKET_PUSH("0123456789abcdef0123456789abcd\u20ac"); IKET_POP();', "a name has 1 to 32 bytes"),
        ('iket::mark(""_ev);', "a name has 1 to 32 bytes"),
        ('iket::push("k"_ev); iket::pop(); iket::end(iket::start("k"_ev));', "ranges of one name are all of tokens, or none is"),
        ('{ iket::range r{"k"_ev}; } { iket::range r{"k"_ev | iket::colour<1>()}; }', "ranges of one name have one colour"),
        ("".join(f'iket::mark("{i}"_ev);' for i in range(31)), "a file has at most 30 names .* -DIKET_COMPAT_EXTENDED"),
    ]
    build = codegen_test.WrongUseTest.build

    def test_what_is_lacking(self):
        types = ["-include", "cuda_fp16.h", "-include", "cuda_bf16.h", "-include", "cuda_fp8.h"]
        for body, sentence in self.CASES:
            with self.subTest(body[:60]):
                body = "const int n = static_cast<int>(threadIdx.x);" + body
                options = ["-std=c++20", *(types if "__nv_" in body or "__half" in body else [])]
                self.assertEqual(self.build(body, *options).returncode, 0)
                done = self.build(body, "-DIKET_COMPAT=official", *options)
                self.assertNotEqual(done.returncode, 0)
                self.assertRegex(" ".join(done.stdout.split()), self.LACKS + '(" ")?' + sentence)
                self.assertEqual(len(re.findall("error: ", done.stdout)), 1, done.stdout)

    def test_a_hundred_names_a_file(self):
        body = "".join(f'iket::mark("{i}"_ev);' for i in range(101))
        done = self.build(body, "-DIKET_COMPAT=official", "-std=c++20", "-rdc=true")
        self.assertRegex(done.stdout, self.LACKS + "there are too many names: at most 4000, with -rdc=true 100 a file")

    def test_other_values_of_the_macros(self):
        for option, sentence in (("-DIKET_COMPAT", "iket: IKET_COMPAT can be official, or not be defined"),
                                 ("-DIKET_COMPAT=other", "iket: IKET_COMPAT can be official, or not be defined"),
                                 ("-DIKET_COMPAT_UNIT=40", "iket: IKET_COMPAT_UNIT is a number from 0 to 39")):
            with self.subTest(option):
                options = ["-DIKET_COMPAT=official"] if "UNIT" in option else []
                done = self.build('iket::mark("k"_ev);', "-std=c++20", *options, option)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(sentence, done.stdout)


if __name__ == "__main__":
    unittest.main()
