// A device function whose mangled name has thousands of characters, and an event with a long name.
#include "shape.cuh"

using namespace iket::literals;

namespace {

template <typename First, typename Second>
struct AnUnreasonablyLongNameOfATemplateThatNests {};
template <unsigned Depth>
struct Nested {
  using Type = AnUnreasonablyLongNameOfATemplateThatNests<typename Nested<Depth - 1>::Type,
                                                          struct Nested<Depth>*>;
};
template <>
struct Nested<0> {
  using Type = int;
};

template <typename T>
__device__ __noinline__ unsigned Long(unsigned x) {
  iket::mark(
      "an event whose name goes on and on, far beyond the thirty-one characters of other tools, "
      "with the letters äöü"_ev,
      x);
  return x * 3;
}

}  // namespace

extern "C" __global__ void Run(unsigned* out, unsigned n) {
  unsigned value = Thread();
  for (unsigned k = 0; k < n; ++k) value = Long<Nested<60>::Type>(value);
  out[Thread()] = value;
}
