// Every form of the API in a kernel of its own. codegen_test.py compiles it as C++17 or C++20, with
// marks on or off; with FORMS_BARE the same kernels have no marks in their source.
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
KERNEL(Mark, FORM(iket::mark("k"_ev);, IKET_MARK("k");), )
KERNEL(MarkInt, FORM(BOTH(iket::mark("k"_ev, i);), BOTH(IKET_MARK("k", i);)), )
KERNEL(MarkUnsigned, FORM(BOTH(iket::mark("k"_ev, 7u * i);), BOTH(IKET_MARK("k", 7u * i);)), )
KERNEL(MarkFloat, FORM(BOTH(iket::mark("k"_ev, in[0]);), BOTH(IKET_MARK("k", in[0]);)), )
KERNEL(MarkBool, FORM(BOTH(iket::mark("k"_ev, in[i] > 1.0f);), BOTH(IKET_MARK("k", in[i] > 1.0f);)), )
KERNEL(MarkByte, FORM(BOTH(iket::mark("k"_ev, static_cast<unsigned char>(i));),
                      BOTH(IKET_MARK("k", static_cast<unsigned char>(i));)), )
KERNEL(MarkEnum, FORM(BOTH(iket::mark("k"_ev, Phase(i));), BOTH(IKET_MARK("k", Phase(i));)), )
KERNEL(MarkLong, FORM(BOTH(iket::mark("k"_ev, 1LL * i * n);), BOTH(IKET_MARK("k", 1LL * i * n);)), )
KERNEL(MarkDouble, FORM(BOTH(iket::mark("k"_ev, 2.0 * i);), BOTH(IKET_MARK("k", 2.0 * i);)), )
KERNEL(MarkPointer, FORM(BOTH(iket::mark("k"_ev, &out[i]);), BOTH(IKET_MARK("k", &out[i]);)), )
KERNEL(PushPop, FORM(iket::push("load"_ev);, IKET_PUSH("load");), FORM(iket::pop();, IKET_POP();))
KERNEL(PushPopInt, FORM(BOTH(iket::push("load"_ev, i);), BOTH(IKET_PUSH("load", i);)),
       FORM(iket::pop();, IKET_POP();))
KERNEL(Range, FORM(iket::range r{"mma"_ev};, IKET_RANGE("mma");), )
KERNEL(RangeInt, FORM(BOTH(iket::range r{"mma"_ev, i};), BOTH(IKET_RANGE("mma", i);)), )
KERNEL(Token, FORM(auto t = iket::start("tile"_ev);, IKET_TOKEN(t, "tile"); IKET_START(t);),
       FORM(iket::end(t);, IKET_END(t);))
KERNEL(TokenInt, FORM(BOTH(auto t = iket::start("tile"_ev, i);),
                      BOTH(IKET_TOKEN(t, "tile", int); IKET_START(t, i);)),
       FORM(BOTH(iket::end(t, i + n);), BOTH(IKET_END(t, i + n);)))
KERNEL(MarkIf, FORM(BOTH(iket::mark(iket::only_if(i % 3 == 0), "k"_ev, i);), BOTH(IKET_MARK_IF(i % 3 == 0, "k", i);)), )
KERNEL(RangeIf, FORM(BOTH(iket::range_if r{iket::only_if(n > i + 64), "mma"_ev, i};),
                     BOTH(IKET_RANGE_IF(n > i + 64, "mma", i);)), )
KERNEL(Level, FORM(BOTH(iket::mark(iket::level<1>("k"_ev), i);), BOTH(IKET_MARK_AT(1, "k", i);)), )
KERNEL(RangeLevel, FORM(BOTH(iket::range r{iket::level<2>("mma"_ev), i};), BOTH(IKET_RANGE_AT(2, "mma", i);)), )
KERNEL(Flow, FORM(BOTH(iket::flow_out("full"_ev, i);), BOTH(IKET_FLOW_OUT("full", i);)),
       FORM(BOTH(iket::flow_in("full"_ev, i);), BOTH(IKET_FLOW_IN("full", i);)))
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
