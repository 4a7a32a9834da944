// The command line and the answer of a shape, in both of its forms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace shape {

struct Arguments {
  unsigned grid = 0, block = 0, n = 0;

  size_t threads() const { return size_t{grid} * block; }
  size_t bytes() const { return threads() * sizeof(unsigned); }
};

inline Arguments Parse(int argc, char** argv, int first) {
  if (argc != first + 3) {
    std::fprintf(stderr, "usage: %s ... GRID BLOCK N\n", argv[0]);
    std::exit(2);
  }
  const auto number = [&](int i) {
    return static_cast<unsigned>(std::strtoul(argv[first + i], nullptr, 10));
  };
  return {number(0), number(1), number(2)};
}

// FNV-1a over the words.
inline void Print(const std::vector<unsigned>& result) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (unsigned word : result) hash = (hash ^ word) * 0x100000001b3u;
  std::printf("%zu words, %016llx\n", result.size(), static_cast<unsigned long long>(hash));
}

}  // namespace shape
