// Runs a fuzz target without libFuzzer, the same way every time: each seed of a folder as it is,
// cut short at many places, and with single bits flipped. Passing means that nothing crashed.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

// How much work a seed may cause, in bytes given to the target, so that a large seed stays quick.
constexpr size_t kBudgetBytes = size_t{24} << 20;
constexpr size_t kMaxDamaged = 2000;

void Run(const std::vector<uint8_t>& bytes) {
  // A copy of exactly this size: a sanitizer sees any read past its end.
  const std::vector<uint8_t> exact(bytes.begin(), bytes.end());
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

size_t Replay(const std::vector<uint8_t>& seed) {
  Run(seed);
  if (seed.empty()) return 1;
  const size_t damaged = std::clamp(kBudgetBytes / seed.size(), size_t{2}, kMaxDamaged) / 2;
  std::mt19937_64 random(seed.size());
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

}  // namespace

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
    runs += Replay({std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()});
  }
  std::printf("%zu seeds, %zu runs\n", files.size(), runs);
  return 0;
}
