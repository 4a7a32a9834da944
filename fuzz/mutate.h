// mutate.h: what a target's own mutator is made of.
//
// A target whose input has structure that blind changes destroy (a checksum, a table of offsets)
// defines LLVMFuzzerCustomMutator: it takes the input apart, has the engine change one piece, and
// puts it together again. Under libFuzzer the engine is libFuzzer; in other builds replay.cpp is.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

// Changes `size` bytes at `data` at random, growing them to `max_size` at most; returns the new
// size.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace iket::fuzz {

// `bytes` changed, and `room` bytes longer at most.
inline std::vector<std::byte> Changed(std::span<const std::byte> bytes, size_t room) {
  std::vector<std::byte> changed(bytes.begin(), bytes.end());
  changed.resize(bytes.size() + room);
  if (changed.empty()) return changed;
  changed.resize(
      LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(changed.data()), bytes.size(), changed.size()));
  return changed;
}

// Puts `bytes` in the place of an input, if they fit; returns the size of what is there then.
inline size_t Replace(uint8_t* data, size_t size, size_t max_size,
                      std::span<const std::byte> bytes) {
  if (bytes.empty() || bytes.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, bytes.data(), bytes.size());
  return bytes.size();
}

}  // namespace iket::fuzz
