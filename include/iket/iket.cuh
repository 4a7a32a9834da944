// SPDX-License-Identifier: Apache-2.0
//
// iket.cuh: marks and ranges inside CUDA kernels.
//
//   #include <iket/iket.cuh>
//   using namespace iket::literals;
//
//   __global__ void gemm(...) {
//     for (int k = 0; k < n; ++k) {
//       { iket::range r{"wait"_ev, k}; wait(full[k % stages]); }  // ends where r does
//       { iket::range r{"mma"_ev, k};  mma(...); }
//     }
//     iket::mark("stored"_ev);
//   }
//
// Build with -DIKET_ENABLE and run under `iket profile -- ./app`.
//
// Guarantees
//   Off    Without IKET_ENABLE nothing is left: the machine code equals that of the same source
//          without marks.
//   On     A mark is five instructions, six or seven with a payload. Not collected, it reads the
//          clock and writes nothing. Collected, it writes to the collector's ring.
//   Warps  An event belongs to a warp: the active lanes of one issue make one event. When two sides
//          of a branch mark, each side is an event. A payload is the value of the first active
//          lane.
//   Names  Any text, of any length, any number of them.
//
//   Order  Marks keep their order among each other and with memory operations that are volatile or
//          atomic. Arithmetic is the compiler's to move: a range around nothing but arithmetic may
//          come out empty. To hold a value in place, give it to a mark: iket::mark("sum"_ev, sum).
//
// An escaped quote in a name, "say \"hi\""_ev, breaks the build of a __host__ __device__ function:
// nvcc writes such literals unescaped into the host's code. IKET_MARK("say \"hi\"") works.
//
// One file without any #include, so that it can be vendored alone and compiled by NVRTC. sm_80 and
// later, nvcc 12.5 or NVRTC 12.5 and later; C++20 for the literals, C++17 for the macros at the
// end. The machine-level contract is docs/placeholder.md.
#pragma once

#define IKET_VERSION 100  // major * 10000 + minor * 100 + patch

#if __cplusplus < 201703L && !(defined(_MSVC_LANG) && _MSVC_LANG >= 201703L)
#error "iket: marks need C++17: build with -std=c++17 or later"
#endif

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define IKET_DETAIL_FUNCTION __host__ __device__ __forceinline__
#else
#define IKET_DETAIL_FUNCTION inline
#endif

#if defined(IKET_ENABLE) && defined(__clang__) && defined(__CUDA__)
#error "iket: marks need nvcc or NVRTC: Clang has no asm constraint \"C\""
#endif
#if defined(IKET_ENABLE) && defined(__CUDACC_VER_MAJOR__)
#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ < 1205
#error "iket: marks need CUDA 12.5 or later (asm constraint \"C\")"
#endif
#endif
#if defined(IKET_ENABLE) && defined(__CUDA_ARCH__)
#if __CUDA_ARCH__ < 800
#warning "iket: marks need sm_80 or later; they are left out of the code for this architecture"
#elif defined(__CUDACC_DEBUG__)
// ptxas (13.0) ends with a segmentation fault on a variable inside a function, which every mark
// has.
#warning "iket: marks cannot be built with -G; they are left out (-lineinfo works)"
#else
#define IKET_DETAIL_ON 1
#endif
#endif
#ifndef IKET_DETAIL_ON
#define IKET_DETAIL_ON 0
#endif

// The note in the host's object that says that its device code may have marks, so that a collector
// need not look for them in everybody else's (docs/placeholder.md). Linkers keep notes, strip keeps
// what is loaded.
#if defined(IKET_ENABLE) && defined(__linux__) && !defined(__CUDA_ARCH__) && \
    !defined(__CUDACC_RTC__)
__asm__(
    ".pushsection .note.iket,\"a\",@note\n\t"
    ".balign 4\n\t.long 5, 4, 1\n\t.asciz \"iket\"\n\t.balign 4\n\t.long 1\n\t"
    ".popsection");
#endif

// Of <cuda_fp16.h>, <cuda_bf16.h> and <cuda_fp8.h>, which need not be there.
struct __half;
struct __nv_bfloat16;
struct __nv_fp8_e4m3;
struct __nv_fp8_e5m2;

namespace iket {
inline namespace v1 {
namespace detail {

// What an event is; part of its id and of its declaration.
enum class kind : unsigned char {
  mark = 0,
  push = 1,
  pop = 2,
  range_begin = 3,
  range_end = 4,
  token_begin = 5,
  token_end = 6,
  flow_out = 7,
  flow_in = 8
};

// The numbers of payload types: those of NVIDIA's IKET metadata, and from 64 on ours.
template <typename T, typename = void>
struct payload_type {
  static constexpr bool known = false;
  static constexpr unsigned char number = 0;
  static constexpr bool is_wide = false;
};
struct no_payload {};
struct more_than_one_payload {};  // of a macro; not known
template <unsigned char Number>
struct payload_number {
  static constexpr bool known = true;
  static constexpr unsigned char number = Number;
  static constexpr bool is_wide = Number == 7 || (Number >= 14 && Number <= 16);  // 64 bits
};
// clang-format off
template <> struct payload_type<no_payload> : payload_number<0> {};
template <> struct payload_type<char> : payload_number<(char(-1) < 0) ? 1 : 2> {};
template <> struct payload_type<signed char> : payload_number<1> {};
template <> struct payload_type<unsigned char> : payload_number<2> {};
template <> struct payload_type<short> : payload_number<3> {};
template <> struct payload_type<unsigned short> : payload_number<4> {};
template <> struct payload_type<int> : payload_number<5> {};
template <> struct payload_type<unsigned> : payload_number<6> {};
template <> struct payload_type<long> : payload_number<sizeof(long) == 8 ? 7 : 5> {};
template <> struct payload_type<unsigned long> : payload_number<sizeof(long) == 8 ? 16 : 6> {};
template <> struct payload_type<long long> : payload_number<7> {};
template <> struct payload_type<unsigned long long> : payload_number<16> {};
template <> struct payload_type<char16_t> : payload_number<4> {};
template <> struct payload_type<char32_t> : payload_number<6> {};
template <> struct payload_type<wchar_t> : payload_number<sizeof(wchar_t) == 4 ? ((wchar_t(-1) < wchar_t(0)) ? 5 : 6) : 4> {};
#if defined(__cpp_char8_t)
template <> struct payload_type<char8_t> : payload_number<2> {};
#endif
template <> struct payload_type<float> : payload_number<13> {};
template <> struct payload_type<double> : payload_number<14> {};
template <typename T> struct payload_type<T*> : payload_number<15> {};
template <> struct payload_type<decltype(nullptr)> : payload_number<15> {};
template <> struct payload_type<bool> : payload_number<64> {};
template <> struct payload_type<::__half> : payload_number<65> {};
template <> struct payload_type<::__nv_bfloat16> : payload_number<66> {};
template <> struct payload_type<::__nv_fp8_e4m3> : payload_number<67> {};
template <> struct payload_type<::__nv_fp8_e5m2> : payload_number<68> {};
// clang-format on
template <bool>
struct only_if;
template <>
struct only_if<true> {
  using type = void;
};
template <typename T>
struct payload_type<T, typename only_if<__is_enum(T)>::type> : payload_type<__underlying_type(T)> {
};

#if IKET_DETAIL_ON
template <int Bytes>
struct small_bits {
  using type = unsigned char;
};
template <>
struct small_bits<2> {
  using type = unsigned short;
};
// The bits of a payload, in the low ones of the result.
template <typename T>
__device__ __forceinline__ unsigned long long bits_of(T* value) {
  return reinterpret_cast<unsigned long long>(value);
}
template <typename T>
__device__ __forceinline__ auto bits_of(T value) {
  if constexpr (payload_type<T>::number >= 65) {  // structs of one or two bytes
    typename small_bits<sizeof(T)>::type bits;
    memcpy(&bits, &value, sizeof(bits));
    return static_cast<unsigned>(bits);
  } else if constexpr (payload_type<T>::is_wide) {
    return static_cast<unsigned long long>(value);
  } else {
    return static_cast<unsigned>(value);
  }
}
__device__ __forceinline__ unsigned bits_of(float value) { return __float_as_uint(value); }
__device__ __forceinline__ unsigned long long bits_of(double value) {
  return static_cast<unsigned long long>(__double_as_longlong(value));
}
__device__ __forceinline__ unsigned long long bits_of(decltype(nullptr)) { return 0; }
#endif

// A pop has no name; every other event has one. A name is a type with `size()` and `at(i)`.
template <typename T, typename = void>
struct is_name {
  static constexpr bool value = false;
};
template <typename T>
struct is_name<T, decltype(T::size(), T::at(0), void())> {
  static constexpr bool value = true;
};
struct no_name {
  IKET_DETAIL_FUNCTION static constexpr int size() { return 0; }
  IKET_DETAIL_FUNCTION static constexpr char at(int) { return 0; }
};

// A name with a level, see level().
template <typename Name, int Level>
struct leveled_name : Name {
  static constexpr int level = Level;
};
template <typename T, typename = void>
struct level_of {
  static constexpr int value = 0;
};
template <typename T>
struct level_of<T, decltype(T::level, void())> {
  static constexpr int value = T::level;
};
// Whether events of this name are left in the code.
template <typename Name>
struct is_kept {
#if defined(IKET_LEVEL)
  static constexpr bool value = level_of<Name>::value <= IKET_LEVEL;
#else
  static constexpr bool value = true;
#endif
};

#if IKET_DETAIL_ON

// The declaration of one event as bytes: a header of 16, the name, a NUL (docs/placeholder.md).
template <typename Name, kind Kind, unsigned char Payload>
struct declaration {
  static constexpr int header_size = 16;
  static constexpr int size = header_size + Name::size() + 1;

  // FNV-1a over kind, payload type and name; the top bit stays free for records of the collector.
  IKET_DETAIL_FUNCTION static constexpr unsigned make_id() {
    unsigned hash = 0x811c9dc5u;
    hash = (hash ^ static_cast<unsigned char>(Kind)) * 0x01000193u;
    hash = (hash ^ Payload) * 0x01000193u;
    for (int i = 0; i < Name::size(); ++i) {
      hash = (hash ^ static_cast<unsigned char>(Name::at(i))) * 0x01000193u;
    }
    hash &= 0x7fffffffu;
    return hash == 0 ? 1 : hash;
  }
  static constexpr unsigned id = make_id();

  IKET_DETAIL_FUNCTION static constexpr unsigned char byte(int i) {
    switch (i) {
        // clang-format off
      case 0: return 'I'; case 1: return 'K'; case 2: return 'E'; case 3: return 'T';
      case 4: return header_size; case 5: return 0;
      case 6: return static_cast<unsigned char>(Kind);
      case 7: return Payload;
      case 8: case 9: case 10: case 11: return static_cast<unsigned char>(id >> (8 * (i - 8)));
      case 12: case 13: case 14: case 15:
        return static_cast<unsigned char>(static_cast<unsigned>(Name::size()) >> (8 * (i - 12)));
      // clang-format on
      default:
        return i < header_size + Name::size()
                   ? static_cast<unsigned char>(Name::at(i - header_size))
                   : static_cast<unsigned char>(0);
    }
  }
};

template <int... Index>
struct indices {};
// Halves instead of counting down, so that long names do not nest templates deeply.
template <typename Left, typename Right>
struct join;
template <int... Index, int... Other>
struct join<indices<Index...>, indices<Other...>> {
  using type = indices<Index..., (static_cast<int>(sizeof...(Index)) + Other)...>;
};
template <int Count>
struct make_indices
    : join<typename make_indices<Count / 2>::type, typename make_indices<Count - Count / 2>::type> {
};
template <>
struct make_indices<0> {
  using type = indices<>;
};
template <>
struct make_indices<1> {
  using type = indices<0>;
};

// The declaration as the initialiser of a PTX array: "0x49,0x4b,...,0x00".
template <typename Declaration, typename Indices>
struct initialiser;
template <typename Declaration, int... Index>
struct initialiser<Declaration, indices<Index...>> {
  IKET_DETAIL_FUNCTION static constexpr char digit(int value) {
    return static_cast<char>(value < 10 ? '0' + value : 'a' + value - 10);
  }
  IKET_DETAIL_FUNCTION static constexpr char character(int i) {
    switch (i % 5) {
        // clang-format off
      case 0: return '0';
      case 1: return 'x';
      case 2: return digit(Declaration::byte(i / 5) >> 4);
      case 3: return digit(Declaration::byte(i / 5) & 15);
      default: return ',';
        // clang-format on
    }
  }
  static constexpr char text[] = {character(Index)..., 0};
};
template <typename Name, kind Kind, unsigned char Payload>
using initialiser_of =
    initialiser<declaration<Name, Kind, Payload>,
                typename make_indices<declaration<Name, Kind, Payload>::size * 5 - 1>::type>;

// The address that a placeholder would store to: [window - 16, window) is the top of the shared
// memory that the driver reserves. Not volatile: one read serves all marks of a function.
__device__ __forceinline__ unsigned window() {
  unsigned address;
#if __CUDA_ARCH__ >= 900
  asm("{\n\t.reg .b32 rank;\n\t"
      "mov.u32 %0, %%reserved_smem_offset_cap;\n\t"
      "mov.u32 rank, %%cluster_ctarank;\n\t"
      "mad.lo.u32 %0, rank, 0x1000000, %0;\n\t}"
      : "=r"(address));
#else
  asm("mov.u32 %0, %%reserved_smem_offset_cap;" : "=r"(address));
#endif
  return address;
}

// The store happens when the clock equals another number, so to say never, and must not be foreseen
// to be dead; the collector turns the comparison into something else. With a payload the comparison
// is with it, so that the compiler computes it outside of the guard. Where the window is nobody's
// to write to, before sm_90, a second condition makes never out of so to say never.
#if __CUDA_ARCH__ >= 900
#define IKET_DETAIL_GUARD(number) "setp.eq.u32 p, t, " number ";\n\t"
#else
#define IKET_DETAIL_GUARD(number)        \
  ".reg .b32 sms;\n\t.reg .pred no;\n\t" \
  "mov.u32 sms, %%nsmid;\n\t"            \
  "setp.eq.u32 no, sms, 0;\n\t"          \
  "setp.eq.and.u32 p, t, " number ", no;\n\t"
#endif
// All forms return the clock that is recorded, which nearly nobody uses.
template <typename Name, kind Kind>
__device__ __forceinline__ unsigned emit() {
  using decl = declaration<Name, Kind, 0>;
  unsigned clock;
  asm volatile(
      "{\n\t.global .align 4 .b8 iket_decl[] = {%3};\n\t"
      ".reg .b32 t;\n\t.reg .pred p;\n\t"
      "mov.u32 t, %%clock;\n\t"
      IKET_DETAIL_GUARD("%1")
      "@p st.volatile.shared.v2.u32 [%2+-8], {t, %1};\n\t"
      "pmevent.mask 0xe110;\n\t"
      "mov.b32 %0, t;\n\t}"
      : "=r"(clock)
      : "n"(decl::id), "r"(window()), "C"(initialiser_of<Name, Kind, 0>::text)
      : "memory");
  return clock;
}
// The fourth word is left as it is.
template <typename Name, kind Kind, unsigned char Payload>
__device__ __forceinline__ unsigned emit(unsigned payload) {
  using decl = declaration<Name, Kind, Payload>;
  unsigned clock;
  asm volatile(
      "{\n\t.global .align 4 .b8 iket_decl[] = {%3};\n\t"
      ".reg .b32 t, none;\n\t.reg .pred p;\n\t"
      "pmevent.mask 0xe200;\n\t"
      "mov.u32 t, %%clock;\n\t"
      IKET_DETAIL_GUARD("%4")
      "@p st.volatile.shared.v4.u32 [%2+-16], {t, %1, %4, none};\n\t"
      "pmevent.mask 0xe110;\n\t"
      "mov.b32 %0, t;\n\t}"
      : "=r"(clock)
      : "n"(decl::id), "r"(window()), "C"(initialiser_of<Name, Kind, Payload>::text), "r"(payload)
      : "memory");
  return clock;
}
// The clock is compared with `low`.
template <typename Name, kind Kind, unsigned char Payload>
__device__ __forceinline__ unsigned emit(unsigned low, unsigned high) {
  using decl = declaration<Name, Kind, Payload>;
  unsigned clock;
  asm volatile(
      "{\n\t.global .align 4 .b8 iket_decl[] = {%3};\n\t"
      ".reg .b32 t;\n\t.reg .pred p;\n\t"
      "pmevent.mask 0xe200;\n\t"
      "mov.u32 t, %%clock;\n\t"
      IKET_DETAIL_GUARD("%4")
      "@p st.volatile.shared.v4.u32 [%2+-16], {t, %1, %4, %5};\n\t"
      "pmevent.mask 0xe110;\n\t"
      "mov.b32 %0, t;\n\t}"
      : "=r"(clock)
      : "n"(decl::id), "r"(window()), "C"(initialiser_of<Name, Kind, Payload>::text), "r"(low),
        "r"(high)
      : "memory");
  return clock;
}
template <typename Name, kind Kind, unsigned char Payload>
__device__ __forceinline__ unsigned emit(unsigned long long payload) {
  return emit<Name, Kind, Payload>(static_cast<unsigned>(payload),
                                   static_cast<unsigned>(payload >> 32));
}
// The end of a token's range without a payload: the third word is left as it is, and the clock is
// compared with the fourth.
template <typename Name>
__device__ __forceinline__ void emit_end(unsigned token) {
  constexpr kind Kind = kind::token_end;
  using decl = declaration<Name, Kind, 0>;
  asm volatile(
      "{\n\t.global .align 4 .b8 iket_decl[] = {%2};\n\t"
      ".reg .b32 t, none;\n\t.reg .pred p;\n\t"
      "pmevent.mask 0xe200;\n\t"
      "mov.u32 t, %%clock;\n\t"
      IKET_DETAIL_GUARD("%3")
      "@p st.volatile.shared.v4.u32 [%1+-16], {t, %0, none, %3};\n\t"
      "pmevent.mask 0xe110;\n\t}" ::"n"(decl::id),
      "r"(window()), "C"(initialiser_of<Name, Kind, 0>::text), "r"(token)
      : "memory");
}

#undef IKET_DETAIL_GUARD

#endif  // IKET_DETAIL_ON

template <kind Kind, typename Name, typename T>
IKET_DETAIL_FUNCTION unsigned event(Name, T payload) {
  static_assert(is_name<Name>::value, "iket: a name is a literal with _ev behind it: \"load\"_ev");
  static_assert(
      payload_type<T>::known,
      "iket: a payload is one number (integer, bool, enum, float, double, half, bfloat16, "
      "fp8) or pointer; cast the value to one of them");
#if IKET_DETAIL_ON
  if constexpr (is_name<Name>::value && payload_type<T>::known && is_kept<Name>::value) {
    return emit<Name, Kind, payload_type<T>::number>(bits_of(payload));
  }
#else
  static_cast<void>(payload);
#endif
  return 0;
}
template <kind Kind, typename Name>
IKET_DETAIL_FUNCTION unsigned event(Name) {
  static_assert(is_name<Name>::value, "iket: a name is a literal with _ev behind it: \"load\"_ev");
#if IKET_DETAIL_ON
  if constexpr (is_name<Name>::value && is_kept<Name>::value) return emit<Name, Kind>();
#endif
  return 0;
}

template <typename T>
struct is_real {
  static constexpr bool value = payload_type<T>::number == 13 || payload_type<T>::number == 14 ||
                                payload_type<T>::number >= 65;
};

template <typename A, typename B>
struct is_same {
  static constexpr bool value = false;
};
template <typename A>
struct is_same<A, A> {
  static constexpr bool value = true;
};

}  // namespace detail

// Whether an event happens: the first argument of those below that shall be conditional. Without
// IKET_ENABLE it never holds, and what computes it is gone. Where it differs between the lanes of a
// warp the event is of those for which it holds.
//
//   iket::mark(iket::only_if(k % 16 == 0), "k"_ev, k);
class condition {
 public:
  IKET_DETAIL_FUNCTION explicit operator bool() const {
#if IKET_DETAIL_ON
    return holds_;
#else
    return false;
#endif
  }

 private:
  friend IKET_DETAIL_FUNCTION condition only_if(bool holds);
#if defined(IKET_ENABLE)
  bool holds_ = false;
#endif
};
[[nodiscard]] IKET_DETAIL_FUNCTION condition only_if(bool holds) {
  condition made;
#if defined(IKET_ENABLE)
  made.holds_ = holds;
#else
  static_cast<void>(holds);
#endif
  return made;
}

// The name with a level: events of a level above IKET_LEVEL, if that is defined, are left out of
// the code, as all are without IKET_ENABLE. Other names have level 0.
//
//   iket::range inner{iket::level<2>("k"_ev), k};  // not with -DIKET_ENABLE -DIKET_LEVEL=1
template <int Level, typename Name>
IKET_DETAIL_FUNCTION constexpr detail::leveled_name<Name, Level> level(Name) {
  static_assert(detail::is_name<Name>::value,
                "iket: a name is a literal with _ev behind it: \"load\"_ev");
  return {};
}

// A point in time on the timeline of the warp. `name` is a literal: "load"_ev.
template <typename Name>
IKET_DETAIL_FUNCTION void mark(Name name) {
  detail::event<detail::kind::mark>(name);
}
// The same with a value of the first active lane: any integer, bool, enum, float, double, half,
// bfloat16, fp8, or a pointer. No value and the value 0 are told apart.
template <typename Name, typename T>
IKET_DETAIL_FUNCTION void mark(Name name, T payload) {
  detail::event<detail::kind::mark>(name, payload);
}

template <typename Name, typename... Payload>
IKET_DETAIL_FUNCTION void mark(condition when, Name name, Payload... payload) {
  if (when) mark(name, payload...);
}

// Opens a range that the next pop() of the same warp closes; ranges nest. Prefer `range` where the
// two ends lie in one scope: its end carries the name, so that a mix-up is seen.
template <typename Name>
IKET_DETAIL_FUNCTION void push(Name name) {
  detail::event<detail::kind::push>(name);
}
template <typename Name, typename T>
IKET_DETAIL_FUNCTION void push(Name name, T payload) {
  detail::event<detail::kind::push>(name, payload);
}

// Closes the innermost range that push() opened. That of a push with a level has it, too: pop<2>().
template <int Level = 0>
IKET_DETAIL_FUNCTION void pop() {
  detail::event<detail::kind::pop>(detail::leveled_name<detail::no_name, Level>{});
}

// A range from here to the end of the enclosing scope. It needs a name of its own: the range of
// iket::range{"mma"_ev}; ends at once, so compilers warn.
template <typename Name>
class range {
 public:
  [[nodiscard]] IKET_DETAIL_FUNCTION explicit range(Name name) {
    detail::event<detail::kind::range_begin>(name);
  }
  template <typename T>
  [[nodiscard]] IKET_DETAIL_FUNCTION range(Name name, T payload) {
    detail::event<detail::kind::range_begin>(name, payload);
  }
  IKET_DETAIL_FUNCTION ~range() { detail::event<detail::kind::range_end>(Name{}); }
  range(const range&) = delete;
  range& operator=(const range&) = delete;
};
template <typename Name>
range(Name) -> range<Name>;
template <typename Name, typename T>
range(Name, T) -> range<Name>;

// The same if a condition holds where it begins: iket::range_if r{iket::only_if(k == 0), "mma"_ev};
template <typename Name>
class range_if {
 public:
  template <typename... Payload>
  [[nodiscard]] IKET_DETAIL_FUNCTION range_if(condition when, Name name, Payload... payload)
      : when_(when) {
    static_assert(sizeof...(Payload) <= 1, "iket: a range has one payload, or none");
    if (when_) detail::event<detail::kind::range_begin>(name, payload...);
  }
  IKET_DETAIL_FUNCTION ~range_if() {
    if (when_) detail::event<detail::kind::range_end>(Name{});
  }
  range_if(const range_if&) = delete;
  range_if& operator=(const range_if&) = delete;

 private:
  condition when_;
};
template <typename Name, typename... Payload>
range_if(condition, Name, Payload...) -> range_if<Name>;

// A range that its token closes, wherever that is by then: in a later iteration, at one of several
// exclusive places. Such ranges do not nest, and those of one name may overlap. A token is copied
// and assigned like a number, lives in one register, and without IKET_ENABLE is nothing.
//
//   auto load = iket::sentinel("load"_ev);
//   for (int k = 0; k < n; ++k) {
//     iket::end(load);                   // the first time that of no range: not a fault
//     load = iket::start("load"_ev);
//     ...
//   }
//   iket::end(load);
//
// A range whose start has a payload has one of the same type at its end, of at most 32 bits. The
// first end counts. Of a warp whose lanes hold different tokens the first active lane's is ended.
// In shared memory a token is no sentinel before it is assigned.
template <typename Name, typename Payload = detail::no_payload>
class token {
  static_assert(detail::payload_type<Payload>::known,
                "iket: the payload of a token is one number or pointer, neither const nor more");

 public:
  token() = default;  // of no range
  template <typename Other>
  IKET_DETAIL_FUNCTION token& operator=(const token<Name, Other>&) {
    static_assert(detail::is_same<Payload, Other>::value,
                  "iket: this token's payload is of another type: declare the token with that one, "
                  "or cast the value");
    return *this;
  }

 private:
  template <typename N, typename... P>
  friend IKET_DETAIL_FUNCTION auto start(N name, P... payload);
  template <typename N, typename Q, typename... P>
  friend IKET_DETAIL_FUNCTION void end(token<N, Q> closed, P... payload);

#if defined(IKET_ENABLE)
  unsigned clock_ = 0;  // of the begin
#endif
};

namespace detail {
template <typename... Payload>
struct payload_of {
  using type = no_payload;
};
template <typename T>
struct payload_of<T> {
  using type = T;
};
template <typename A, typename B, typename... More>
struct payload_of<A, B, More...> {
  using type = more_than_one_payload;
};
}  // namespace detail

// Opens such a range and returns its token.
template <typename Name, typename... Payload>
[[nodiscard]] IKET_DETAIL_FUNCTION auto start(Name name, Payload... payload) {
  static_assert(sizeof...(Payload) <= 1, "iket: a range has one payload, or none");
  static_assert(
      !(detail::payload_type<Payload>::is_wide || ...),
      "iket: a token's range takes payloads of at most 32 bits: its end records the token, "
      "too");
  token<Name, typename detail::payload_of<Payload...>::type> opened;
#if defined(IKET_ENABLE)
  opened.clock_ = detail::event<detail::kind::token_begin>(name, payload...);
#else
  detail::event<detail::kind::token_begin>(name, payload...);
#endif
  return opened;
}

// Closes the range that this token opened, if it is of one.
template <typename Name, typename Opened, typename... Payload>
IKET_DETAIL_FUNCTION void end(token<Name, Opened> closed, Payload... payload) {
  using given = typename detail::payload_of<Payload...>::type;
  static_assert(detail::is_same<Opened, given>::value,
                "iket: the end of a range has a payload if its start has one, of the same type");
#if IKET_DETAIL_ON
  if constexpr (!detail::is_kept<Name>::value) {
    static_cast<void>(closed);
    (static_cast<void>(payload), ...);
  } else if constexpr (sizeof...(Payload) == 0) {
    detail::emit_end<Name>(closed.clock_);
  } else {
    detail::emit<Name, detail::kind::token_end, detail::payload_type<given>::number>(
        detail::bits_of(payload)..., closed.clock_);
  }
#else
  static_cast<void>(closed);
  (static_cast<void>(payload), ...);
#endif
}

// A token of no range, of the type that start() returns for this name, and payload type if any.
template <typename Payload = detail::no_payload, typename Name>
[[nodiscard]] IKET_DETAIL_FUNCTION token<Name, Payload> sentinel(Name) {
  static_assert(detail::is_name<Name>::value,
                "iket: a name is a literal with _ev behind it: \"load\"_ev");
  return {};
}

// Dependencies. Where something is handed on, and where it has come: an arrow on the timeline from
// the flow_out that was last by this name and id in the cluster (without clusters: the CTA) to the
// flow_in. One may come to several. The id is any integer, enum or pointer: a tile's number, or a
// barrier and its phase, barrier_id().
//
//   iket::flow_out("full"_ev, k);   arrive(full[k % stages]);
//   wait(full[k % stages]);         iket::flow_in("full"_ev, k);
template <typename Name, typename Id>
IKET_DETAIL_FUNCTION void flow_out(Name name, Id id) {
  static_assert(!detail::is_real<Id>::value, "iket: the id of a flow is an integer or pointer");
  detail::event<detail::kind::flow_out>(name, id);
}
template <typename Name, typename Id>
IKET_DETAIL_FUNCTION void flow_in(Name name, Id id) {
  static_assert(!detail::is_real<Id>::value, "iket: the id of a flow is an integer or pointer");
  detail::event<detail::kind::flow_in>(name, id);
}
// Of a barrier in shared memory (8 bytes aligned, as mbarriers and cuda::barrier are) in one of its
// phases: the same number wherever in the CTA it is asked for.
IKET_DETAIL_FUNCTION unsigned barrier_id(const void* barrier, unsigned phase) {
  return static_cast<unsigned>(reinterpret_cast<unsigned long long>(barrier)) | (phase & 1u);
}

// Clang has what it takes since version 12, and does not say so because of something else.
#if (defined(__cpp_nontype_template_args) && __cpp_nontype_template_args >= 201911L) || \
    (defined(__clang__) && __clang_major__ >= 12 && __cplusplus >= 202002L)

namespace detail {
template <int Count>
struct literal {
  char characters[Count];
  // NOLINTNEXTLINE: implicit by design
  IKET_DETAIL_FUNCTION constexpr literal(const char (&text)[Count]) : characters{} {
    for (int i = 0; i < Count; ++i) characters[i] = text[i];
  }
};
template <typename T>
struct literal_size;
template <int Count>
struct literal_size<literal<Count>> {
  static constexpr int value = Count - 1;
};
}  // namespace detail

// The name of an event as a type, made by "text"_ev.
template <detail::literal Text>
struct event_name {
  IKET_DETAIL_FUNCTION static constexpr int size() {
    return detail::literal_size<decltype(Text)>::value;
  }
  IKET_DETAIL_FUNCTION static constexpr char at(int i) { return Text.characters[i]; }
};

namespace literals {
template <detail::literal Text>
IKET_DETAIL_FUNCTION constexpr event_name<Text> operator""_ev() {
  return {};
}
}  // namespace literals

#else

// "text"_ev is a type made of a text, which C++17 cannot do; the macros below can.
struct event_names_need_std_cpp20_or_the_macro_IKET_MARK;
namespace literals {
IKET_DETAIL_FUNCTION event_names_need_std_cpp20_or_the_macro_IKET_MARK
operator""_ev(const char*, decltype(sizeof(0)));
}  // namespace literals

#endif

}  // namespace v1
}  // namespace iket

// The same for C++17: names are string literals, the second argument of the first three is the
// optional payload.
//   IKET_MARK("k", k);  IKET_RANGE("mma", k);  IKET_PUSH("load");  IKET_POP();
// IKET_RANGE lasts to the end of the enclosing scope. A token is declared with its name, and the
// type of its payload if it has one; until it is started it is a sentinel:
//   IKET_TOKEN(load, "load", int);  IKET_START(load, k);  IKET_END(load, k);
//   IKET_FLOW_OUT("full", k);  IKET_FLOW_IN("full", k);
// On a condition, and with a level:
//   IKET_MARK_IF(k % 16 == 0, "k", k);  IKET_RANGE_IF(k % 16 == 0, "mma", k);
//   IKET_MARK_AT(2, "k", k);  IKET_RANGE_AT(2, "mma", k);
#define IKET_MARK(...) IKET_DETAIL_EVENT(::iket::mark, __VA_ARGS__)
#define IKET_PUSH(...) IKET_DETAIL_EVENT(::iket::push, __VA_ARGS__)
#define IKET_POP() ::iket::pop()
#define IKET_RANGE(...) IKET_DETAIL_RANGE(__COUNTER__, __VA_ARGS__, ~)

#define IKET_MARK_IF(condition, ...)                        \
  do {                                                      \
    if (::iket::only_if(condition)) IKET_MARK(__VA_ARGS__); \
  } while (0)
#define IKET_RANGE_IF(condition, ...) IKET_DETAIL_RANGE_IF(__COUNTER__, condition, __VA_ARGS__, ~)
#define IKET_MARK_AT(number, ...) IKET_DETAIL_MARK_AT(number, __VA_ARGS__, ~)
#define IKET_RANGE_AT(number, ...) IKET_DETAIL_RANGE_AT(__COUNTER__, number, __VA_ARGS__, ~)

#define IKET_TOKEN(...) IKET_DETAIL_TOKEN(__VA_ARGS__, ::iket::detail::no_payload, ~)
#define IKET_START(...) IKET_DETAIL_START(__VA_ARGS__, ~)
#define IKET_END(...) ::iket::end(__VA_ARGS__)
#define IKET_FLOW_OUT(text, id) IKET_DETAIL_EVENT(::iket::flow_out, text, id)
#define IKET_FLOW_IN(text, id) IKET_DETAIL_EVENT(::iket::flow_in, text, id)

#define IKET_DETAIL_TOKEN(variable, text, payload, ...) \
  IKET_DETAIL_NAME(iket_name_of_##variable, text);      \
  ::iket::token<iket_name_of_##variable, payload> variable
#define IKET_DETAIL_START(variable, ...) \
  ((variable) = ::iket::start(iket_name_of_##variable {} IKET_DETAIL_PAYLOAD(__VA_ARGS__)))
#define IKET_DETAIL_EVENT(function, ...) IKET_DETAIL_EVENT_(function, __VA_ARGS__, ~)
#define IKET_DETAIL_EVENT_(function, text, ...)                                \
  do {                                                                         \
    IKET_DETAIL_NAME(iket_name, text);                                         \
    IKET_DETAIL_CALL(function(iket_name {} IKET_DETAIL_PAYLOAD(__VA_ARGS__))); \
  } while (0)
#define IKET_DETAIL_CALL(call) call
#define IKET_DETAIL_RANGE(counter, ...) IKET_DETAIL_RANGE_(counter, __VA_ARGS__)
#define IKET_DETAIL_RANGE_(counter, text, ...)                   \
  IKET_DETAIL_NAME(iket_name_##counter, text);                   \
  const ::iket::range<iket_name_##counter> iket_range_##counter( \
      iket_name_##counter {} IKET_DETAIL_PAYLOAD(__VA_ARGS__))
#define IKET_DETAIL_RANGE_IF(counter, condition, ...) \
  IKET_DETAIL_RANGE_IF_(counter, condition, __VA_ARGS__)
#define IKET_DETAIL_RANGE_IF_(counter, condition, text, ...)        \
  IKET_DETAIL_NAME(iket_name_##counter, text);                      \
  const ::iket::range_if<iket_name_##counter> iket_range_##counter( \
      ::iket::only_if(condition), iket_name_##counter {} IKET_DETAIL_PAYLOAD(__VA_ARGS__))
#define IKET_DETAIL_MARK_AT(number, text, ...)                                         \
  do {                                                                                 \
    IKET_DETAIL_NAME(iket_name, text);                                                 \
    ::iket::mark(::iket::level<number>(iket_name{}) IKET_DETAIL_PAYLOAD(__VA_ARGS__)); \
  } while (0)
#define IKET_DETAIL_RANGE_AT(counter, number, ...) \
  IKET_DETAIL_RANGE_AT_(counter, number, __VA_ARGS__)
#define IKET_DETAIL_RANGE_AT_(counter, number, text, ...)                          \
  IKET_DETAIL_NAME(iket_name_##counter, text);                                     \
  const ::iket::range<::iket::detail::leveled_name<iket_name_##counter, (number)>> \
      iket_range_##counter(::iket::level<(number)>(iket_name_##counter{})          \
                               IKET_DETAIL_PAYLOAD(__VA_ARGS__))
// The trailing ~ tells whether there is a payload before it.
#define IKET_DETAIL_PAYLOAD(...)                                                      \
  IKET_DETAIL_PICK(__VA_ARGS__, IKET_DETAIL_MANY, IKET_DETAIL_MANY, IKET_DETAIL_MANY, \
                   IKET_DETAIL_WITH, IKET_DETAIL_NONE, )(__VA_ARGS__)
#define IKET_DETAIL_PICK(a, b, c, d, e, pick, ...) pick
#define IKET_DETAIL_MANY(...) \
  , ::iket::detail::more_than_one_payload {}
#define IKET_DETAIL_WITH(payload, end) , payload
#define IKET_DETAIL_NONE(end)
// A literal, and nothing else, is spelled with a quote at its end.
#define IKET_DETAIL_NAME(type, text)                                                          \
  struct type {                                                                               \
    static_assert((#text)[sizeof(#text) > 1 ? sizeof(#text) - 2 : 0] == '"',                  \
                  "iket: a name is a string literal, and nothing else: IKET_MARK(\"load\")"); \
    IKET_DETAIL_FUNCTION static constexpr int size() {                                        \
      return static_cast<int>(sizeof("" text)) - 1;                                           \
    }                                                                                         \
    IKET_DETAIL_FUNCTION static constexpr char at(int i) { return ("" text)[i]; }             \
  }
