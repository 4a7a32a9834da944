// mufu.h: the special function unit, to the bit as the hardware computes.
//
// The unit interpolates: a table of quadratics, chosen by the argument's upper bits, evaluated in
// fixed point at its lower 17 bits, and the result cut off (not rounded) to a float. Tables and
// widths were found in results of an H200 (tools/mufu): each function equals it for all of 24
// million arguments of every exponent, and mufu_test.cpp holds it against their hashes.
//
// Cost: integers only, about 30 ns a value.
#pragma once

#include <cstdint>

namespace iket::sim {

// The numbers are those of the instruction's function field.
enum class MufuFunction : uint8_t {
  kCos = 0,
  kSin = 1,
  kEx2 = 2,
  kLg2 = 3,
  kRcp = 4,
  kRsq = 5,
  kRcp64High = 6,
  kRsq64High = 7,
  kSqrt = 8,
  kTanh = 9,
};

// The result's bits for an argument's: single precision, sin and cos of an angle in turns; the
// functions of doubles take the upper word and return one. Subnormal arguments are 0 (but for
// kTanh), subnormal results too, and a NaN is 0x7fffffff.
uint32_t Mufu(MufuFunction function, uint32_t argument);

// The same of a half: computed as a float and cut off. The hardware has kEx2 and kTanh.
uint16_t MufuOfHalf(MufuFunction function, uint16_t argument);

}  // namespace iket::sim
