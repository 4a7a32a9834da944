// SPDX-License-Identifier: Apache-2.0
//
// Runs the kernels of the corpus on whatever libcuda.so.1 finds, a GPU or the software device, and
// prints what they computed: one JSON object a kernel.
//
//   corpus_runner MANIFEST CUBINS [KERNEL...]
//
// MANIFEST is corpus.txt; CUBINS names files by a pattern in which {} stands for the source, as in
// build/corpus/{}.O3.cubin. Inputs come from the kernel's name. Results that are compared bit for
// bit are given as a hash and their first words, others in full. A kernel that fails ends the
// program with 1, after the others of its source have been tried.
#include <cuda.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "common/gpu_driver.h"

namespace {

constexpr uint32_t kBlocks = 2, kThreads = 128, kCount = kBlocks * kThreads;
constexpr size_t kShownWords = 8;

struct Entry {
  std::string name, source, input, comparison;
  uint32_t words = 0, dynamic_shared = 0;
};

std::vector<Entry> ReadManifest(const char* path) {
  std::vector<Entry> entries;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream fields(line);
    Entry entry;
    fields >> entry.name >> entry.source >> entry.words >> entry.input >> entry.comparison >>
        entry.dynamic_shared;
    if (!fields) {
      std::fprintf(stderr, "corpus_runner: %s: not understood: %s\n", path, line.c_str());
      std::exit(2);
    }
    entries.push_back(entry);
  }
  if (entries.empty()) {
    std::fprintf(stderr, "corpus_runner: %s: no kernels\n", path);
    std::exit(2);
  }
  return entries;
}

class Random {
 public:
  explicit Random(const std::string& seed) {
    for (char c : seed) state_ = (state_ ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  }
  uint64_t Next() {  // splitmix64
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

 private:
  uint64_t state_ = 0xcbf29ce484222325u;
};

// One in eight inputs is special.
template <typename T, size_t N>
T Pick(Random& random, const T (&special)[N], T ordinary) {
  const uint64_t dice = random.Next();
  return dice % 8 == 0 ? special[(dice >> 8) % N] : ordinary;
}

uint16_t SmallFloat16(Random& random, bool bfloat) {
  const auto bits = static_cast<uint16_t>(random.Next());
  const uint16_t special[] = {0,
                              0x8000,
                              static_cast<uint16_t>(bfloat ? 0x7f80 : 0x7c00),
                              static_cast<uint16_t>(bfloat ? 0xff80 : 0xfc00),
                              0x7fff,
                              1,
                              0x0200};
  // Exponents about 1, of either format.
  const uint16_t exponent = static_cast<uint16_t>(bfloat ? 0x3f00 : 0x3800);
  const uint16_t mantissa = static_cast<uint16_t>(bits & (bfloat ? 0x81ff : 0x8fff));
  return Pick(random, special, static_cast<uint16_t>(exponent + mantissa));
}

std::vector<uint32_t> MakeInput(const Entry& entry) {
  Random random(entry.name);
  std::vector<uint32_t> input(4 * kCount);
  constexpr uint32_t kWords[] = {0, 1, 0xffffffff, 0x80000000, 0x7fffffff, 0x55555555};
  constexpr uint32_t kSingles[] = {0,          0x80000000, 0x7f800000, 0xff800000, 0x7fc00000,
                                   0x00000001, 0x007fffff, 0x4f000000, 0xcf000000, 0x3f000000};
  constexpr uint64_t kDoubles[] = {0, 0x8000000000000000, 0x7ff0000000000000, 0x7ff8000000000000,
                                   1, 0x41e0000000000000, 0xc3e0000000000000, 0x3fe0000000000000};
  for (size_t i = 0; i < input.size(); ++i) {
    const uint64_t bits = random.Next();
    if (entry.input == "float") {
      const float ordinary = static_cast<float>(static_cast<int32_t>(bits)) / float{1 << 28};
      input[i] = Pick(random, kSingles, std::bit_cast<uint32_t>(ordinary));
    } else if (entry.input == "double") {
      const double ordinary = static_cast<double>(static_cast<int64_t>(bits)) / (uint64_t{1} << 50);
      const uint64_t value = Pick(random, kDoubles, std::bit_cast<uint64_t>(ordinary));
      input[i] = static_cast<uint32_t>(value);
      input[++i] = static_cast<uint32_t>(value >> 32);
    } else if (entry.input == "half" || entry.input == "bfloat") {
      const bool bfloat = entry.input == "bfloat";
      const uint32_t low = SmallFloat16(random, bfloat);
      input[i] = low | uint32_t{SmallFloat16(random, bfloat)} << 16;
    } else {
      input[i] = Pick(random, kWords, static_cast<uint32_t>(bits));
    }
  }
  return input;
}

uint64_t Fnv(const std::vector<uint32_t>& words) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (uint32_t word : words) {
    for (int i = 0; i < 4; ++i) hash = (hash ^ (word >> (8 * i) & 0xff)) * 0x100000001b3u;
  }
  return hash;
}

void Print(const Entry& entry, const std::vector<uint32_t>& result) {
  std::printf("{\"kernel\":\"%s\",\"compare\":\"%s\",\"hash\":\"%016llx\",\"words\":\"",
              entry.name.c_str(), entry.comparison.c_str(),
              static_cast<unsigned long long>(Fnv(result)));
  const size_t shown =
      entry.comparison == "exact" ? std::min(kShownWords, result.size()) : result.size();
  for (size_t i = 0; i < shown; ++i) std::printf("%08x", result[i]);
  std::printf("\"}\n");
  std::fflush(stdout);
}

// False if the launch failed; what failed is said.
bool Run(CUmodule module, const Entry& entry) {
  CUfunction function;
  CUresult result = cuModuleGetFunction(&function, module, entry.name.c_str());
  const example::Array<uint32_t> input(MakeInput(entry));
  const example::Array<uint32_t> output(std::vector<uint32_t>(kCount * entry.words, 0xcdcdcdcd));
  uint32_t* in = input.data();
  uint32_t* out = output.data();
  uint32_t count = kCount;
  void* arguments[] = {&in, &out, &count};
  if (result == CUDA_SUCCESS) {
    result = cuLaunchKernel(function, kBlocks, 1, 1, kThreads, 1, 1, entry.dynamic_shared, nullptr,
                            arguments, nullptr);
  }
  if (result == CUDA_SUCCESS) result = cuCtxSynchronize();
  if (result != CUDA_SUCCESS) {
    const char* text = nullptr;
    cuGetErrorString(result, &text);
    std::fprintf(stderr, "corpus_runner: %s: error %d, %s\n", entry.name.c_str(),
                 static_cast<int>(result), text != nullptr ? text : "unknown");
    return false;
  }
  Print(entry, output.ToHost());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: corpus_runner MANIFEST CUBINS [KERNEL...]\n");
    return 2;
  }
  const std::string pattern = argv[2];
  const size_t hole = pattern.find("{}");
  if (hole == std::string::npos) {
    std::fprintf(stderr, "corpus_runner: no {} in '%s'\n", argv[2]);
    return 2;
  }
  const std::vector<std::string> wanted(argv + 3, argv + argc);
  const example::Gpu gpu;
  std::map<std::string, CUmodule> modules;
  bool good = true;
  for (const Entry& entry : ReadManifest(argv[1])) {
    if (!wanted.empty() && std::ranges::find(wanted, entry.name) == wanted.end()) continue;
    CUmodule& module = modules[entry.source];
    if (module == nullptr) {
      const std::string path = pattern.substr(0, hole) + entry.source + pattern.substr(hole + 2);
      EXAMPLE_CHECK(cuModuleLoad(&module, path.c_str()));
    }
    good = Run(module, entry) && good;
    // A fault spoils the context for all that would follow.
    if (!good) return 1;
  }
  return 0;
}
