// SPDX-License-Identifier: Apache-2.0
//
// What the kernel Work (work.cu) computes, and what every program that runs it says of it.
#pragma once

#include <cstdio>
#include <vector>

// True if the values are right. Prints a line.
inline bool SayValues(const std::vector<unsigned>& values) {
  unsigned sum = 0;
  bool right = true;
  for (unsigned i = 0; i < values.size(); ++i) {
    unsigned expected = i;
    for (unsigned k = 0; k < 10; ++k) expected = expected * 1664525u + 1013904223u;
    right = right && values[i] == expected;
    sum = sum * 31 + values[i];
  }
  std::printf("%zu values, %08x, %s\n", values.size(), sum, right ? "ok" : "wrong");
  return right;
}
