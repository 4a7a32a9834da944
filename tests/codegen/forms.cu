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
// What C++17 needs in front.
#define NAMES                                                                            \
  FORM(, BOTH(IKET_NAME(three, "k", i, n, x); IKET_NAME(four, "k", a, b, c, d);          \
              IKET_NAME(mma, "mma"); IKET_NAME(wgmma, "wgmma"); IKET_NAME(load, "load"); \
              IKET_NAME(producer, "producer"); IKET_NAME(smem, "smem[s]");))

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
KERNEL(MarkTwo, FORM(BOTH(iket::mark("k"_ev("i"_ev, "n"_ev), i, n);), BOTH(IKET_MARK("k", i, n);)), )
KERNEL(MarkThree, NAMES FORM(BOTH(iket::mark("k"_ev("i"_ev, "n"_ev, "x"_ev), i, 1LL * n, in[i]);),
                             BOTH(iket::mark(three, i, 1LL * n, in[i]);)), )
KERNEL(MarkFour, NAMES FORM(BOTH(iket::mark("k"_ev("a"_ev, "b"_ev, "c"_ev, "d"_ev), i, n, in[i], 2 * i);),
                            BOTH(iket::mark(four, i, n, in[i], 2 * i);)), )
KERNEL(MarkFourLong, NAMES FORM(BOTH(iket::mark("k"_ev("a"_ev, "b"_ev, "c"_ev, "d"_ev), 1LL * i, 2.0 * in[i], &out[i], 1ull * n);),
                                BOTH(iket::mark(four, 1LL * i, 2.0 * in[i], &out[i], 1ull * n);)), )
KERNEL(RangeTwo, FORM(BOTH(iket::range r{"mma"_ev("i"_ev, "n"_ev), i, n};), BOTH(IKET_RANGE("mma", i, n);)), )
KERNEL(TokenLong, FORM(BOTH(auto t = iket::start("tile"_ev, 1LL * i);),
                       BOTH(IKET_TOKEN(t, "tile", long long); IKET_START(t, 1LL * i);)),
       FORM(BOTH(iket::end(t, 1LL * n);), BOTH(IKET_END(t, 1LL * n);)))
KERNEL(TokenFour, NAMES FORM(BOTH(auto t = iket::start("k"_ev("a"_ev, "b"_ev, "c"_ev, "d"_ev), 1LL * i, 2.0, 3LL, n);),
                             BOTH(auto t = iket::start(four, 1LL * i, 2.0, 3LL, n);)),
       FORM(BOTH(iket::end(t, 1LL * n, in[i] * 2.0, 5LL, i);), BOTH(iket::end(t, 1LL * n, in[i] * 2.0, 5LL, i);)))
KERNEL(Lane, NAMES FORM(BOTH(iket::range r{"mma"_ev | iket::lane("wgmma"_ev) | iket::colour<0x4477aa>(), i};),
                        BOTH(iket::range r{mma | iket::lane(wgmma) | iket::colour<0x4477aa>(), i};)), )
KERNEL(Group, NAMES FORM(BOTH(const iket::group g{"producer"_ev, i == 0}; iket::range_if r{g, "load"_ev, i}; iket::mark(g, "mma"_ev);),
                         BOTH(const iket::group g{producer, i == 0}; iket::range_if r{g, load, i}; iket::mark(g, mma);)), )
KERNEL(EachLane, NAMES FORM(BOTH(iket::mark_each_lane("mma"_ev, i);), BOTH(iket::mark_each_lane(mma, i);)), )
KERNEL(Sync, FORM(iket::sync();, iket::sync();), )
KERNEL(Dag, NAMES FORM(BOTH(iket::dag("producer"_ev).edge("load"_ev, "mma"_ev, iket::label("smem[s]"_ev), iket::via("wgmma"_ev));),
                       BOTH(iket::dag(producer).edge(load, mma, iket::label(smem), iket::via(wgmma));)), )
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
