// Runs a fuzz target without libFuzzer, the same way every time: each seed of a folder as it is,
// cut short at many places, with single bits flipped, and changed step by step, by the target's own
// mutator where it has one. Passing means that nothing crashed.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);
// Targets may define it.
extern "C" [[gnu::weak]] size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                                        unsigned seed);

namespace {

std::mt19937_64 g_random;

// How much work a seed may cause, in bytes given to the target, so that a large seed stays quick.
constexpr size_t kBudgetBytes = size_t{24} << 20;
constexpr size_t kMaxDamaged = 2000;
// The same for all seeds together, of changes step by step.
constexpr size_t kChangesBudgetBytes = size_t{256} << 20;
constexpr size_t kMaxChanges = 10'000;
// Changes are piled up on an input so many times before the seed itself is taken again.
constexpr size_t kChangesInARow = 8;

void Run(const std::vector<uint8_t>& bytes) {
  // A copy of exactly this size: a sanitizer sees any read past its end.
  const std::vector<uint8_t> exact(bytes.begin(), bytes.end());
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

size_t Blindly(uint8_t* data, size_t size, size_t max_size, unsigned) {
  return LLVMFuzzerMutate(data, size, max_size);
}

size_t Replay(const std::vector<uint8_t>& seed) {
  Run(seed);
  if (seed.empty()) return 1;
  const size_t damaged = std::clamp(kBudgetBytes / seed.size(), size_t{2}, kMaxDamaged) / 2;
  std::mt19937_64& random = g_random;
  random.seed(seed.size());
  for (size_t i = 0; i < damaged; ++i) {
    // Spread over the whole seed, with its first bytes (headers) visited one by one.
    const size_t cut = i < damaged / 2 ? std::min(i, seed.size()) : random() % seed.size();
    Run(std::vector<uint8_t>(seed.begin(), seed.begin() + static_cast<ptrdiff_t>(cut)));
  }
  for (size_t i = 0; i < damaged; ++i) {
    std::vector<uint8_t> flipped = seed;
    const size_t bits = 8 * (i % 2 == 0 ? std::min<size_t>(seed.size(), 256) : seed.size());
    const size_t bit = random() % bits;
    flipped[bit / 8] = static_cast<uint8_t>(flipped[bit / 8] ^ (1u << (bit % 8)));
    Run(flipped);
  }
  return 1 + 2 * damaged;
}

size_t Change(const std::vector<uint8_t>& seed, size_t seeds) {
  const size_t changes =
      std::min(kChangesBudgetBytes / std::max<size_t>(seed.size(), 1), kMaxChanges) / seeds;
  const auto mutate = LLVMFuzzerCustomMutator != nullptr ? LLVMFuzzerCustomMutator : Blindly;
  std::vector<uint8_t> changed;
  for (size_t i = 0; i < changes; ++i) {
    if (i % kChangesInARow == 0) changed = seed;
    const size_t size = changed.size();
    changed.resize(size + 256);
    changed.resize(mutate(changed.data(), size, changed.size(), static_cast<unsigned>(g_random())));
    Run(changed);
  }
  return changes;
}

}  // namespace

// A byte changed, inserted or left out; a number overwritten by one that is often a mistake, or
// moved a little; a piece doubled.
size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size) {
  constexpr uint64_t kNumbers[] = {0,      1,           0x7f,        0xff,
                                   0xffff, 0x7fff'ffff, 0xffff'ffff, ~uint64_t{0}};
  if (size == 0) {
    if (max_size == 0) return 0;
    data[0] = static_cast<uint8_t>(g_random());
    return 1;
  }
  const size_t at = g_random() % size;
  switch (g_random() % 6) {
    case 0:
      if (size == max_size) break;
      std::memmove(data + at + 1, data + at, size - at);
      data[at] = static_cast<uint8_t>(g_random());
      return size + 1;
    case 1:
      if (size == 1) break;
      std::memmove(data + at, data + at + 1, size - at - 1);
      return size - 1;
    case 2: {
      const uint64_t number = kNumbers[g_random() % std::size(kNumbers)];
      std::memcpy(data + at, &number, std::min<size_t>(size - at, size_t{1} << g_random() % 4));
      return size;
    }
    case 3: {
      const size_t length = 1 + g_random() % std::min<size_t>(size - at, 16);
      std::memmove(data + g_random() % (size - length + 1), data + at, length);
      return size;
    }
    case 4: {
      // A number becomes one near it, which a table's size or alignment makes wrong.
      const size_t place = at & ~size_t{7};
      uint64_t number = 0;
      const size_t width = std::min<size_t>(size - place, g_random() % 2 == 0 ? 4 : 8);
      std::memcpy(&number, data + place, width);
      const uint64_t step = uint64_t{1} << g_random() % 8;
      number += g_random() % 2 == 0 ? step : 0 - step;
      std::memcpy(data + place, &number, width);
      return size;
    }
    default:
      break;
  }
  data[at] = static_cast<uint8_t>(g_random());
  return size;
}

int main(int argc, char** argv) {
  std::error_code error;
  std::vector<std::filesystem::path> files;
  if (argc == 2) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[1], error)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  }
  if (files.empty()) {
    std::fprintf(stderr, "usage: %s FOLDER, with at least one seed in it\n", argv[0]);
    return 2;
  }
  std::sort(files.begin(), files.end());
  Run({});
  size_t runs = 1;
  for (const auto& file : files) {
    std::ifstream stream(file, std::ios::binary);
    const std::vector<uint8_t> seed{std::istreambuf_iterator<char>(stream), {}};
    runs += Replay(seed) + Change(seed, files.size());
  }
  std::printf("%zu seeds, %zu runs\n", files.size(), runs);
  return 0;
}
