// Every form that NVIDIA's IKET has, for official_test.py, as C++17 or C++20; with FORMS_BARE the
// same kernels have no marks in their source. Each kernel has the names of its own, so that ids are
// not in the order of names.
#include <iket/iket.cuh>

#if defined(FORMS_BARE)
#define FORM(cpp20, cpp17)
#elif __cplusplus >= 202002L
using namespace iket::literals;
#define FORM(cpp20, cpp17) cpp20
#else
#define FORM(cpp20, cpp17) cpp17
#endif
#define BOTH(...) __VA_ARGS__  // keeps commas together

enum class Phase : short { kLoad, kStore };

#define KERNEL(name, before, after)                                     \
  extern "C" __global__ void name(float* out, const float* in, int n) { \
    for (int i = static_cast<int>(threadIdx.x); i < n; i += 32) {       \
      before const float x = in[i] * 2.0f + 1.0f;                       \
      if (x > 3.0f) out[i] = x;                                         \
      after                                                             \
    }                                                                   \
  }

// clang-format off
#define VALUE(kernel, name, value) \
  KERNEL(kernel, FORM(BOTH(iket::mark(name##_ev, value);), BOTH(IKET_MARK(name, value);)), )
KERNEL(Mark, FORM(iket::mark("plain"_ev);, IKET_MARK("plain");), )
VALUE(MarkI8, "i8", static_cast<signed char>(i))
VALUE(MarkU8, "u8", static_cast<unsigned char>(i))
VALUE(MarkI16, "i16", static_cast<short>(i))
VALUE(MarkU16, "u16", static_cast<unsigned short>(i))
VALUE(MarkI32, "i32", i)
VALUE(MarkU32, "u32", 7u * i)
VALUE(MarkI64, "i64", 1LL * i * n)
VALUE(MarkU64, "u64", 1ull * i * n)
VALUE(MarkF32, "f32", in[0])
VALUE(MarkF64, "f64", 2.0 * i)
VALUE(MarkPointer, "pointer", &out[i])
VALUE(MarkEnum, "enum", Phase(i))
VALUE(MarkConstant, "i32", 5)
KERNEL(PushPop, FORM(iket::push("pushed"_ev);, IKET_PUSH("pushed");), FORM(iket::pop();, IKET_POP();))
KERNEL(Range, FORM(iket::range r{"range"_ev};, IKET_RANGE("range");), )
KERNEL(RangeI32, FORM(BOTH(iket::range r{"range"_ev, i};), BOTH(IKET_RANGE("range", i);)), )
KERNEL(RangeIf, FORM(BOTH(iket::range_if r{iket::only_if(n > i + 64), "range"_ev, i};),
                     BOTH(IKET_RANGE_IF(n > i + 64, "range", i);)), )
KERNEL(MarkIf, FORM(BOTH(iket::mark(iket::only_if(i % 3 == 0), "odd one:\t\xc3\xa4 of 32 bytes, no more"_ev, i);),
                    BOTH(IKET_MARK_IF(i % 3 == 0, "odd one:\t\xc3\xa4 of 32 bytes, no more", i);)), )
KERNEL(Token, FORM(auto t = iket::start("token"_ev);, IKET_TOKEN(t, "token"); IKET_START(t);),
       FORM(iket::end(t);, IKET_END(t);))
KERNEL(TokenI64, FORM(BOTH(auto t = iket::start("tile"_ev, 1LL * i);), BOTH(IKET_TOKEN(t, "tile", long long); IKET_START(t, 1LL * i);)),
       FORM(BOTH(iket::end(t, 1LL * n);), BOTH(IKET_END(t, 1LL * n);)))
KERNEL(Coloured, FORM(BOTH(iket::range r{"blue"_ev | iket::colour<0x4477aa>() | iket::category("c"_ev), i};),
                      BOTH(IKET_NAME(blue, "blue"); IKET_NAME(c, "c");
                           iket::range r{blue | iket::colour<0x4477aa>() | iket::category(c), i};)), )
KERNEL(EachLane, FORM(iket::mark_each_lane("lanes"_ev);, BOTH(IKET_NAME(lanes, "lanes"); iket::mark_each_lane(lanes);)), )
KERNEL(Named, FORM(BOTH(iket::mark("named"_ev("i"_ev), i);), BOTH(IKET_NAME(named, "named", value); iket::mark(named, i);)), )
KERNEL(Ignored, FORM(BOTH(iket::sync(); iket::dag("g"_ev).edge("a"_ev, "b"_ev);),
                     BOTH(IKET_NAME(g, "g"); IKET_NAME(a, "a"); IKET_NAME(b, "b"); iket::sync(); iket::dag(g).edge(a, b);)), )
// clang-format on

// A token that crosses iterations, and is closed at one of two places.
extern "C" __global__ void TokenLate(float* out, const float* in, int n) {
#if defined(FORMS_BARE)
#elif __cplusplus >= 202002L
  auto late = iket::sentinel("late"_ev);
#else
  IKET_TOKEN(late, "late");
#endif
  for (int i = static_cast<int>(threadIdx.x); i < n; i += 32) {
    const float x = in[i] * 2.0f + 1.0f;
    FORM(iket::end(late);, IKET_END(late);)
    FORM(late = iket::start("late"_ev);, IKET_START(late);)
    if (x > 3.0f) out[i] = x;
  }
  FORM(iket::end(late);, IKET_END(late);)
}
