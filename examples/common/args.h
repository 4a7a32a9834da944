// SPDX-License-Identifier: Apache-2.0
//
// Command line of the examples: `--name VALUE` with whole numbers, and `--help`.
#pragma once

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace example {

struct Option {
  const char* name;  // with its dashes: "--size"
  int* value;        // holds the default; set when the option is given
  int least;         // smaller values are refused
  const char* help;
};

// "saxpy_marked" for "bin/examples/saxpy_marked".
inline const char* ProgramName(const char* argv0) {
  const char* const slash = std::strrchr(argv0, '/');
  return slash == nullptr ? argv0 : slash + 1;
}

// Sets the options' values. `--help` prints them and exits with 0; wrong use exits with 2.
inline void ParseArgs(int argc, char** argv, const char* about,
                      const std::vector<Option>& options) {
  const auto fail = [&](const char* what, const char* which) {
    std::fprintf(stderr, "%s: %s '%s'; see --help\n", argv[0], what, which);
    std::exit(2);
  };
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--help") == 0) {
      std::printf("usage: %s [options]\n%s\n\n", argv[0], about);
      for (const Option& option : options) {
        std::printf("  %-14s %s (default %d)\n", option.name, option.help, *option.value);
      }
      std::exit(0);
    }
    const Option* found = nullptr;
    for (const Option& option : options) {
      if (std::strcmp(argv[i], option.name) == 0) found = &option;
    }
    if (found == nullptr) fail("unknown option", argv[i]);
    if (++i == argc) fail("no value for", found->name);
    const char* const end = argv[i] + std::strlen(argv[i]);
    const auto [rest, error] = std::from_chars(argv[i], end, *found->value);
    if (error != std::errc{} || rest != end || *found->value < found->least) {
      std::fprintf(stderr, "%s: %s takes a whole number from %d on, not '%s'\n", argv[0],
                   found->name, found->least, argv[i]);
      std::exit(2);
    }
  }
}

}  // namespace example
