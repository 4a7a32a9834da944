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
//   On     A mark is five instructions, seven or eight with a payload, about six more for each two
//          words beyond. Not collected, it reads the clock and writes nothing. Collected, it writes
//          to the collector's ring.
//   Warps  An event belongs to a warp: the active lanes of one issue make one event. When two sides
//          of a branch mark, each side is an event. Values are those of the first active lane.
//   Names  Any text, of any length, any number of them.
//
//   Order  Marks keep their order among each other and with memory operations that are volatile or
//          atomic. Arithmetic is the compiler's to move: a range around nothing but arithmetic may
//          come out empty. To hold a value in place, give it to a mark: iket::mark("sum"_ev, sum).
//
// An escaped quote in a name, "say \"hi\""_ev, breaks the build of a __host__ __device__ function:
// nvcc writes such literals unescaped into the host's code. IKET_MARK("say \"hi\"") works.
//
// A long file because it is one, without any #include: it can be vendored alone and compiled by
// NVRTC. (With IKET_COMPAT=official it includes official.cuh, and marks are for NVIDIA's
// collector.) sm_80 and later; nvcc 12.5 or NVRTC 12.5 and later, or Clang 19; C++20 for the
// literals, C++17 for the macros at the end. The machine-level contract is docs/placeholder.md.
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

#if defined(IKET_ENABLE) && defined(__CUDACC_VER_MAJOR__)
#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ < 1205
#error "iket: marks need CUDA 12.5 or later (asm constraint \"C\")"
#endif
#endif
#if defined(IKET_ENABLE) && defined(__CUDA_ARCH__)
#if __CUDA_ARCH__ < 800
#warning "iket: marks need sm_80 or later; they are left out of the code for this architecture"
#elif defined(IKET_COMPAT) && __CUDA_ARCH__ < 900
#warning "iket: NVIDIA's IKET needs sm_90 or later; marks are left out of the code for this one"
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

// -DIKET_COMPAT=official: marks are those of NVIDIA's IKET, see official.cuh.
#if defined(IKET_COMPAT)
#define IKET_DETAIL_COMPAT_official 1
#define IKET_DETAIL_COMPAT_(value) IKET_DETAIL_COMPAT_##value
#define IKET_DETAIL_COMPAT(value) IKET_DETAIL_COMPAT_(value)
#if !IKET_DETAIL_COMPAT(IKET_COMPAT)
#error "iket: IKET_COMPAT can be official, or not be defined"
#endif
#define IKET_DETAIL_OFFICIAL 1
#else
#define IKET_DETAIL_OFFICIAL 0
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

#define IKET_DETAIL_A_TEXT "iket: a name is a literal with _ev behind it: \"load\"_ev"

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
  flow_in = 8,
  sync = 9,
  edge = 10  // no event: from a name to another
};

// The numbers of payload types: those of NVIDIA's IKET metadata, and from 64 on ours.
template <typename T, typename = void>
struct payload_type {
  static constexpr bool known = false;
  static constexpr unsigned char number = 0;
  static constexpr bool is_wide = false;
};
struct no_payload {};
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

// A text is a type with `size()` and `at(i)`. A pop has no name; every other event has one.
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
template <typename... Texts>
struct joined : no_name {};
template <typename First, typename... More>
struct joined<First, More...> {
  IKET_DETAIL_FUNCTION static constexpr int size() {
    return First::size() + joined<More...>::size();
  }
  IKET_DETAIL_FUNCTION static constexpr char at(int i) {
    return i < First::size() ? First::at(i) : joined<More...>::at(i - First::size());
  }
};

// What a declaration says beyond a name, as text (docs/placeholder.md).
enum class about : unsigned char {
  value_name = 1,  // of the payload
  value = 2,       // one more, its type, and what it is called
  category = 3,
  colour = 4,
  lane = 5,
  group = 6,
  target = 7,  // of an edge, as the next three
  label = 8,
  via = 9,
  dag = 10
};
template <about What, unsigned char Number, typename Text>
struct attribute {
  IKET_DETAIL_FUNCTION static constexpr int size() { return 4 + Text::size(); }
  IKET_DETAIL_FUNCTION static constexpr char at(int i) {
    // clang-format off
    switch (i) {
      case 0: return static_cast<char>(What);
      case 1: return static_cast<char>(Number);
      case 2: case 3: return static_cast<char>(Text::size() >> (8 * (i - 2)));
      default: return Text::at(i - 4);
    }
    // clang-format on
  }
};

// Names that say more, each of which is still the name that it was made of: attributes, by `|`;
template <typename Attribute>
struct annotation {};
template <typename T, typename = void>
struct attributes_of {
  using type = joined<>;
};
template <typename T>
struct attributes_of<T, decltype(static_cast<typename T::attributes*>(nullptr), void())> {
  using type = typename T::attributes;
};
template <typename Name, typename... Values>
struct name_of_values;
template <typename Name, typename Attribute>
struct annotated_name : Name {
  using attributes = joined<typename attributes_of<Name>::type, Attribute>;
  // Not the name's own, which would be of the name alone.
  template <typename... Values>
  IKET_DETAIL_FUNCTION constexpr name_of_values<annotated_name, Values...> operator()(
      Values...) const {
    return {};
  }
};
template <typename Group, typename Name>
using grouped_name = annotated_name<Name, attribute<about::group, 0, Group>>;
template <typename Group, typename Name>
struct name_in {
  using type = grouped_name<Group, Name>;
};
template <typename Name>
struct name_in<no_name, Name> {  // of no group
  using type = Name;
};
// Whether it has a row of its own on the timeline, and whether that is this group's.
template <typename Attributes>
struct has_row {
  static constexpr bool value = false;
};
template <typename... Attributes>
struct has_row<joined<Attributes...>> {
  static constexpr bool value = (has_row<Attributes>::value || ... || false);
};
template <typename Text>
struct has_row<attribute<about::lane, 0, Text>> {
  static constexpr bool value = true;
};
template <typename Text>
struct has_row<attribute<about::group, 0, Text>> {
  static constexpr bool value = true;
};
template <typename Attributes, typename Group>
struct speaks_for {
  static constexpr bool value = false;
};
template <typename... Attributes, typename Group>
struct speaks_for<joined<Attributes...>, Group> {
  static constexpr bool value = (speaks_for<Attributes, Group>::value || ... || false);
};
template <typename Group>
struct speaks_for<attribute<about::group, 0, Group>, Group> {
  static constexpr bool value = true;
};
template <typename Name>
struct is_apart {
  static constexpr bool value = has_row<typename attributes_of<Name>::type>::value;
};
template <typename Name, typename Group>
struct is_of_group {
  static constexpr bool value = speaks_for<typename attributes_of<Name>::type, Group>::value;
};
template <typename Name, typename Attribute>
IKET_DETAIL_FUNCTION constexpr annotated_name<Name, Attribute> operator|(Name,
                                                                         annotation<Attribute>) {
  static_assert(is_name<Name>::value, IKET_DETAIL_A_TEXT);
  return {};
}
template <unsigned Rgb>
struct colour_text : no_name {
  static_assert(Rgb <= 0xffffff, "iket: a colour is a number like 0x4477aa: red, green, blue");
  IKET_DETAIL_FUNCTION static constexpr int size() { return 4; }
  IKET_DETAIL_FUNCTION static constexpr char at(int i) { return static_cast<char>(Rgb >> (8 * i)); }
};
// what the values of the payload are called;
template <typename Name, typename... Values>
struct name_of_values : Name {
  static_assert(sizeof...(Values) <= 4, "iket: an event has at most four values");
  template <typename... Again>
  void operator()(Again...) const = delete;  // it has names for its values
  static constexpr int value_count = static_cast<int>(sizeof...(Values));
  using values = name_of_values;
  template <typename Outer, typename Value>
  using with_first = name_of_values<Outer, Value, Values...>;
};
// Their names and types, which stand in front of the attributes.
template <typename Names, typename... T>
struct value_attributes;
template <typename Name, typename FirstName, typename... Names, typename First, typename... T>
struct value_attributes<name_of_values<Name, FirstName, Names...>, First, T...> {
  using type = joined<attribute<about::value_name, 0, FirstName>,
                      attribute<about::value, payload_type<T>::number, Names>...>;
};
// The same with the number of the lane in front; one value needs no name.
struct lane_text : no_name {
  IKET_DETAIL_FUNCTION static constexpr int size() { return 4; }
  IKET_DETAIL_FUNCTION static constexpr char at(int i) { return "lane"[i]; }
};
struct value_text : no_name {
  IKET_DETAIL_FUNCTION static constexpr int size() { return 5; }
  IKET_DETAIL_FUNCTION static constexpr char at(int i) { return "value"[i]; }
};
template <typename Name, int Count, typename = void>
struct each_lane {
  using type = name_of_values<Name, lane_text, value_text>;
};
template <typename Name>
struct each_lane<Name, 0, void> {
  using type = name_of_values<Name, lane_text>;
};
template <typename Name, int Count>
struct each_lane<Name, Count, decltype(Name::value_count, void())> {
  using type = typename Name::template with_first<Name, lane_text>;
};
template <typename T, typename = void>
struct value_count_of {
  static constexpr int value = 0;
};
template <typename T>
struct value_count_of<T, decltype(T::value_count, void())> {
  static constexpr int value = T::value_count;
};
// and a level, see level().
template <typename Name, int Level>
struct leveled_name : Name {
  static constexpr int level = Level;
  template <typename... Values>
  IKET_DETAIL_FUNCTION constexpr name_of_values<leveled_name, Values...> operator()(
      Values...) const {
    return {};
  }
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

template <typename... T>
struct first_of {
  using type = no_payload;
};
template <typename T, typename... More>
struct first_of<T, More...> {
  using type = T;
};

#if IKET_DETAIL_ON

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

#if IKET_DETAIL_OFFICIAL
}  // namespace detail
}  // namespace v1
}  // namespace iket
#include "official.cuh"
namespace iket {
inline namespace v1 {
namespace detail {
#else

// The declaration of one event as bytes (docs/placeholder.md): a header of 16, the name, a NUL.
// With attributes the header has four bytes more, their size, and they stand behind the NUL.
template <typename Name, kind Kind, unsigned char Payload = 0, typename Attributes = joined<>>
struct declaration {
  static constexpr int header_size = Attributes::size() == 0 ? 16 : 20;
  static constexpr int attributes_at = header_size + Name::size() + 1;
  static constexpr int size = attributes_at + Attributes::size();

  // FNV-1a over kind, payload type, name and attributes; the top bit stays free for records of the
  // collector.
  IKET_DETAIL_FUNCTION static constexpr unsigned make_id() {
    unsigned hash = 0x811c9dc5u;
    hash = (hash ^ static_cast<unsigned char>(Kind)) * 0x01000193u;
    hash = (hash ^ Payload) * 0x01000193u;
    for (int i = 0; i < Name::size(); ++i) {
      hash = (hash ^ static_cast<unsigned char>(Name::at(i))) * 0x01000193u;
    }
    for (int i = 0; i < Attributes::size(); ++i) {
      hash = (hash ^ static_cast<unsigned char>(Attributes::at(i))) * 0x01000193u;
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
        break;
    }
    if (i < header_size) {
      return static_cast<unsigned char>(static_cast<unsigned>(Attributes::size()) >>
                                        (8 * (i - 16)));
    }
    if (i < header_size + Name::size()) {
      return static_cast<unsigned char>(Name::at(i - header_size));
    }
    return i < attributes_at ? static_cast<unsigned char>(0)
                             : static_cast<unsigned char>(Attributes::at(i - attributes_at));
  }
};
// The payload's type, and whether there are words, which are stored inverted.
template <kind Kind, typename... T>
struct stored_payload {
  static constexpr unsigned char inverted = sizeof...(T) != 0 || Kind == kind::token_end ? 0x80 : 0;
  static constexpr unsigned char value =
      static_cast<unsigned char>(payload_type<typename first_of<T...>::type>::number | inverted);
};
// That of an event whose values have these types.
template <typename Name, kind Kind, bool HasValueNames, typename... T>
struct declared {
  using type = declaration<Name, Kind, stored_payload<Kind, T...>::value,
                           typename attributes_of<Name>::type>;
};
template <typename Name, kind Kind, typename First, typename... T>
struct declared<Name, Kind, true, First, T...> {
  using type =
      declaration<Name, Kind, stored_payload<Kind, First, T...>::value,
                  joined<typename value_attributes<typename Name::values, First, T...>::type,
                         typename attributes_of<Name>::type>>;
};

#if defined(__clang__) && defined(__CUDA__)
// Clang has no asm constraint for a text. There the declaration is a variable, which is in the code
// because the asm's operand, a number that nobody reads, names it. Its symbol is spelled from its
// words: the same event has one in all translation units, of which linkers keep one, and no two
// events share one. Not const: Clang would take constant memory for it, of which there are 64 KiB.
template <unsigned long long... Word>
struct iket_decl {
  __device__ __attribute__((used)) static inline unsigned long long words[] = {Word...};
};

template <typename Declaration, typename Indices>
struct in_words;
template <typename Declaration, int... Index>
struct in_words<Declaration, indices<Index...>> {
  IKET_DETAIL_FUNCTION static constexpr unsigned long long word(int index) {
    unsigned long long value = 0;
    for (int i = 7; i >= 0; --i) value = value << 8 | Declaration::byte(8 * index + i);
    return value;
  }
  using type = iket_decl<word(Index)...>;
};
template <typename Declaration>
using initialiser_of =
    typename in_words<Declaration, typename make_indices<(Declaration::size + 7) / 8>::type>::type;

#define IKET_DETAIL_DECLARES(operand) ""
#define IKET_DETAIL_DECLARATION(...) \
  "n"((static_cast<void>(&initialiser_of<__VA_ARGS__>::words), 0))
#else
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
template <typename Declaration>
using initialiser_of =
    initialiser<Declaration, typename make_indices<Declaration::size * 5 - 1>::type>;

#define IKET_DETAIL_DECLARES(operand) ".global .align 4 .b8 iket_decl[] = {" operand "};\n\t"
#define IKET_DETAIL_DECLARATION(...) "C"(initialiser_of<__VA_ARGS__>::text)
#endif

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
#define IKET_DETAIL_EMIT(body, ...)                                                                \
  unsigned clock;                                                                                  \
  asm volatile(                                                                                    \
      "{\n\t" IKET_DETAIL_DECLARES(                                                                \
          "%3") ".reg .b32 t, none, w0, w1, w2, w3, w4, w5, w6, w7, w8;\n\t.reg .pred p;\n\t" body \
                "pmevent.mask 0xe110;\n\t"                                                         \
                "mov.b32 %0, t;\n\t}"                                                              \
      : "=r"(clock)                                                                                \
      : "n"(Declaration::id), "r"(window()), IKET_DETAIL_DECLARATION(Declaration) __VA_ARGS__      \
      : "memory");                                                                                 \
  return clock
// The words of values are stored inverted. A store of four registers in a row wants a value in one
// of them; as it is, the compiler would let it live there, and who changes it next, the counter of
// a loop, would wait until the store has read it. An inverted copy lives for the store alone.
#define IKET_DETAIL_NOT(word, operand) "not.b32 " word ", " operand ";\n\t"
#define IKET_DETAIL_STORE(tag, low, high) \
  "@p st.volatile.shared.v4.u32 [%2+-16], {t, " tag ", " low ", " high "};\n\t"
#define IKET_DETAIL_RECORD(next, low, high) \
  "pmevent.mask 0xe200;\n\t"                \
  "mov.u32 t, %%clock;\n\t" IKET_DETAIL_GUARD("w0") next IKET_DETAIL_STORE("%1", low, high)
// Two words more go to a record more.
#define IKET_DETAIL_NEXT "pmevent.mask 0xe310;\n\t"
#define IKET_DETAIL_MORE(index, next, low, high) \
  "pmevent.mask 0xe400;\n\t" next IKET_DETAIL_STORE("0x8000140" index, low, high)

template <typename Declaration>
__device__ __forceinline__ unsigned emit() {
  IKET_DETAIL_EMIT("mov.u32 t, %%clock;\n\t" IKET_DETAIL_GUARD(
                       "%1") "@p st.volatile.shared.v2.u32 [%2+-8], {t, %1};\n\t", );
}
#define IKET_DETAIL_WORDS_1 IKET_DETAIL_NOT("w0", "%4")
#define IKET_DETAIL_WORDS_2 IKET_DETAIL_WORDS_1 IKET_DETAIL_NOT("w1", "%5")
#define IKET_DETAIL_WORDS_3 IKET_DETAIL_WORDS_2 IKET_DETAIL_NOT("w2", "%6")
#define IKET_DETAIL_WORDS_4 IKET_DETAIL_WORDS_3 IKET_DETAIL_NOT("w3", "%7")
#define IKET_DETAIL_WORDS_5 IKET_DETAIL_WORDS_4 IKET_DETAIL_NOT("w4", "%8")
#define IKET_DETAIL_WORDS_6 IKET_DETAIL_WORDS_5 IKET_DETAIL_NOT("w5", "%9")
#define IKET_DETAIL_WORDS_7 IKET_DETAIL_WORDS_6 IKET_DETAIL_NOT("w6", "%10")
#define IKET_DETAIL_WORDS_8 IKET_DETAIL_WORDS_7 IKET_DETAIL_NOT("w7", "%11")
#define IKET_DETAIL_WORDS_9 IKET_DETAIL_WORDS_8 IKET_DETAIL_NOT("w8", "%12")
#define IKET_DETAIL_RECORD_1 IKET_DETAIL_RECORD(IKET_DETAIL_NEXT, "w0", "w1")
#define IKET_DETAIL_RECORD_2 \
  IKET_DETAIL_RECORD_1 IKET_DETAIL_MORE("1", IKET_DETAIL_NEXT, "w2", "w3")
#define IKET_DETAIL_RECORD_3 \
  IKET_DETAIL_RECORD_2 IKET_DETAIL_MORE("2", IKET_DETAIL_NEXT, "w4", "w5")
#define IKET_DETAIL_RECORD_4 \
  IKET_DETAIL_RECORD_3 IKET_DETAIL_MORE("3", IKET_DETAIL_NEXT, "w6", "w7")
// A word that is not given is left as it is.
template <typename Declaration>
__device__ __forceinline__ unsigned emit(unsigned a) {
  IKET_DETAIL_EMIT(IKET_DETAIL_WORDS_1 IKET_DETAIL_RECORD("", "w0", "none"), , "r"(a));
}
// The end of a token's range without a payload.
template <typename Declaration>
__device__ __forceinline__ unsigned emit_token(unsigned token) {
  IKET_DETAIL_EMIT(IKET_DETAIL_WORDS_1 IKET_DETAIL_RECORD("", "none", "w0"), , "r"(token));
}
template <typename Declaration>
__device__ __forceinline__ unsigned emit(unsigned a, unsigned b) {
  IKET_DETAIL_EMIT(IKET_DETAIL_WORDS_2 IKET_DETAIL_RECORD("", "w0", "w1"), , "r"(a), "r"(b));
}
template <typename Declaration>
__device__ __forceinline__ unsigned emit(unsigned a, unsigned b, unsigned c) {
  IKET_DETAIL_EMIT(IKET_DETAIL_WORDS_3 IKET_DETAIL_RECORD_1 IKET_DETAIL_MORE("1", "", "w2", "none"),
                   , "r"(a), "r"(b), "r"(c));
}
template <typename Declaration>
__device__ __forceinline__ unsigned emit(unsigned a, unsigned b, unsigned c, unsigned d) {
  IKET_DETAIL_EMIT(IKET_DETAIL_WORDS_4 IKET_DETAIL_RECORD_1 IKET_DETAIL_MORE("1", "", "w2", "w3"), ,
                   "r"(a), "r"(b), "r"(c), "r"(d));
}
template <typename Declaration>
__device__ __forceinline__ unsigned emit(unsigned a, unsigned b, unsigned c, unsigned d,
                                         unsigned e) {
  IKET_DETAIL_EMIT(IKET_DETAIL_WORDS_5 IKET_DETAIL_RECORD_2 IKET_DETAIL_MORE("2", "", "w4", "none"),
                   , "r"(a), "r"(b), "r"(c), "r"(d), "r"(e));
}
template <typename Declaration>
__device__ __forceinline__ unsigned emit(unsigned a, unsigned b, unsigned c, unsigned d, unsigned e,
                                         unsigned f) {
  IKET_DETAIL_EMIT(IKET_DETAIL_WORDS_6 IKET_DETAIL_RECORD_2 IKET_DETAIL_MORE("2", "", "w4", "w5"), ,
                   "r"(a), "r"(b), "r"(c), "r"(d), "r"(e), "r"(f));
}
template <typename Declaration>
__device__ __forceinline__ unsigned emit(unsigned a, unsigned b, unsigned c, unsigned d, unsigned e,
                                         unsigned f, unsigned g) {
  IKET_DETAIL_EMIT(IKET_DETAIL_WORDS_7 IKET_DETAIL_RECORD_3 IKET_DETAIL_MORE("3", "", "w6", "none"),
                   , "r"(a), "r"(b), "r"(c), "r"(d), "r"(e), "r"(f), "r"(g));
}
template <typename Declaration>
__device__ __forceinline__ unsigned emit(unsigned a, unsigned b, unsigned c, unsigned d, unsigned e,
                                         unsigned f, unsigned g, unsigned h) {
  IKET_DETAIL_EMIT(IKET_DETAIL_WORDS_8 IKET_DETAIL_RECORD_3 IKET_DETAIL_MORE("3", "", "w6", "w7"), ,
                   "r"(a), "r"(b), "r"(c), "r"(d), "r"(e), "r"(f), "r"(g), "r"(h));
}
template <typename Declaration>
__device__ __forceinline__ unsigned emit(unsigned a, unsigned b, unsigned c, unsigned d, unsigned e,
                                         unsigned f, unsigned g, unsigned h, unsigned i) {
  IKET_DETAIL_EMIT(IKET_DETAIL_WORDS_9 IKET_DETAIL_RECORD_4 IKET_DETAIL_MORE("4", "", "w8", "none"),
                   , "r"(a), "r"(b), "r"(c), "r"(d), "r"(e), "r"(f), "r"(g), "r"(h), "r"(i));
}
#undef IKET_DETAIL_RECORD_1
#undef IKET_DETAIL_RECORD_2
#undef IKET_DETAIL_RECORD_3
#undef IKET_DETAIL_RECORD_4
#undef IKET_DETAIL_WORDS_1
#undef IKET_DETAIL_WORDS_2
#undef IKET_DETAIL_WORDS_3
#undef IKET_DETAIL_WORDS_4
#undef IKET_DETAIL_WORDS_5
#undef IKET_DETAIL_WORDS_6
#undef IKET_DETAIL_WORDS_7
#undef IKET_DETAIL_WORDS_8
#undef IKET_DETAIL_WORDS_9
#undef IKET_DETAIL_MORE
#undef IKET_DETAIL_NEXT
#undef IKET_DETAIL_RECORD
#undef IKET_DETAIL_STORE
#undef IKET_DETAIL_NOT
#undef IKET_DETAIL_EMIT
#undef IKET_DETAIL_GUARD

// Takes `Count` values apart, from the first to the last, each to the end of the words.
template <typename Declaration, int Count>
struct spread {
  template <typename T, typename... More>
  __device__ __forceinline__ static unsigned emit(T value, More... more) {
    if constexpr (payload_type<T>::is_wide) {
      const unsigned long long bits = bits_of(value);
      return spread<Declaration, Count - 1>::emit(more..., static_cast<unsigned>(bits),
                                                  static_cast<unsigned>(bits >> 32));
    } else {
      return spread<Declaration, Count - 1>::emit(more..., static_cast<unsigned>(bits_of(value)));
    }
  }
  // The end of a token's range: the token is the second word.
  template <typename T, typename... More>
  __device__ __forceinline__ static void end(unsigned token, T value, More... more) {
    if constexpr (payload_type<T>::is_wide) {
      const unsigned long long bits = bits_of(value);
      spread<Declaration, Count - 1>::end(token, more..., static_cast<unsigned>(bits),
                                          static_cast<unsigned>(bits >> 32));
    } else {
      spread<Declaration, Count - 1>::end(token, more..., static_cast<unsigned>(bits_of(value)));
    }
  }
};
template <typename Declaration>
struct spread<Declaration, 0> {
  template <typename... Word>
  __device__ __forceinline__ static unsigned emit(Word... word) {
    return detail::emit<Declaration>(word...);
  }
  __device__ __forceinline__ static void end(unsigned token) {
    detail::emit_token<Declaration>(token);
  }
  template <typename... Word>
  __device__ __forceinline__ static void end(unsigned token, unsigned first, Word... word) {
    detail::emit<Declaration>(first, token, word...);
  }
};

#endif  // IKET_DETAIL_OFFICIAL
#endif  // IKET_DETAIL_ON

// What dag() makes.
template <typename Text>
struct dag_of {
  template <typename From, typename To, typename... Attributes>
  IKET_DETAIL_FUNCTION dag_of edge(From, To, annotation<Attributes>...) const {
    static_assert(is_name<From>::value && is_name<To>::value,
                  "iket: an edge leads from a name to another: edge(\"tma\"_ev, \"mma\"_ev)");
#if IKET_DETAIL_ON && !IKET_DETAIL_OFFICIAL
    using edge_declaration = declaration<
        From, kind::edge, 0,
        joined<attribute<about::target, 0, To>, Attributes..., attribute<about::dag, 0, Text>>>;
    if constexpr (is_kept<From>::value) {
      asm volatile(
          "{\n\t" IKET_DETAIL_DECLARES("%0") "}" ::IKET_DETAIL_DECLARATION(edge_declaration));
    }
#endif
    return {};
  }
};

#if IKET_DETAIL_ON
__device__ __forceinline__ unsigned timer() {
  unsigned low;
  asm volatile("mov.u32 %0, %%globaltimer_lo;" : "=r"(low));
  return low;
}
#endif
struct sync_text : no_name {
  IKET_DETAIL_FUNCTION static constexpr int size() { return 4; }
  IKET_DETAIL_FUNCTION static constexpr char at(int i) { return "sync"[i]; }
};

// A group or a condition.
template <typename T>
struct is_speaker {
  static constexpr bool value = false;
};

// True, or the build ends with a sentence: a name, values that can be a payload, and as many of
// them as it has names for.
template <kind Kind, typename Name, typename... T>
IKET_DETAIL_FUNCTION constexpr bool is_event() {
  constexpr int given = static_cast<int>(sizeof...(T));
  constexpr int named = value_count_of<Name>::value;
  constexpr bool of_types = (payload_type<T>::known && ... && true);
  constexpr bool counted =
      given == named || (named == 0 && given == 1) || (Kind == kind::range_end && given == 0);
  constexpr bool named_well = is_name<Name>::value;
  static_assert(
      named_well || !is_speaker<Name>::value,
      "iket: marks and range_if take a group or only_if() in front of the name, tokens and "
      "flows a group, and nothing else does");
  static_assert(named_well || is_speaker<Name>::value, IKET_DETAIL_A_TEXT);
  static_assert(!named_well || of_types,
                "iket: a payload is numbers (integer, bool, enum, float, double, half, bfloat16, "
                "fp8) or pointers; cast the value to one of them");
  static_assert(!named_well || !of_types || given > 4 || counted,
                "iket: several values need a name each, and each name a value: "
                "mark(\"tile\"_ev(\"m\"_ev, \"n\"_ev), m, n), with IKET_NAME in C++17");
  static_assert(given <= 4, "iket: an event has at most four values");
  return is_name<Name>::value && of_types && counted && given <= 4;
}

template <kind Kind, typename Name, typename... T>
IKET_DETAIL_FUNCTION unsigned event(Name, T... value) {
#if IKET_DETAIL_ON
  if constexpr (is_event<Kind, Name, T...>() && is_kept<Name>::value) {
#if IKET_DETAIL_OFFICIAL
    official::emit<Kind, Name>(value...);
    return 1;  // a token that is of a range
#else
    return spread<typename declared<Name, Kind, (value_count_of<Name>::value > 0), T...>::type,
                  static_cast<int>(sizeof...(T))>::emit(value...);
#endif
  }
#else
  static_cast<void>(is_event<Kind, Name, T...>());
  (static_cast<void>(value), ...);
#endif
  return 0;
}
// The end of the range that began at that clock.
template <typename Name, typename... T>
IKET_DETAIL_FUNCTION void end_event(Name, unsigned token, T... value) {
#if IKET_DETAIL_ON
  if constexpr (is_event<kind::token_end, Name, T...>() && is_kept<Name>::value) {
#if IKET_DETAIL_OFFICIAL
    if (token != 0) official::emit<kind::token_end, Name>(value...);
#else
    spread<typename declared<Name, kind::token_end, (value_count_of<Name>::value > 0), T...>::type,
           static_cast<int>(sizeof...(T))>::end(token, value...);
#endif
  }
#else
  static_cast<void>(token);
  static_cast<void>(is_event<kind::token_end, Name, T...>());
  (static_cast<void>(value), ...);
#endif
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

#undef IKET_DETAIL_DECLARES
#undef IKET_DETAIL_DECLARATION

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
namespace detail {
template <>
struct is_speaker<condition> {
  static constexpr bool value = true;
};
}  // namespace detail
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
  static_assert(detail::is_name<Name>::value, IKET_DETAIL_A_TEXT);
  return {};
}

// Names that say more: "mma"_ev | iket::lane("wgmma"_ev) | iket::colour<0x4477aa>()
//
// A lane is a row of its own below the warp, for what runs beside the rest; its ranges nest among
// each other. A category is for choosing what to record or to show.
template <typename Text>
IKET_DETAIL_FUNCTION constexpr auto lane(Text) {
  static_assert(detail::is_name<Text>::value, IKET_DETAIL_A_TEXT);
  return detail::annotation<detail::attribute<detail::about::lane, 0, Text>>{};
}
template <typename Text>
IKET_DETAIL_FUNCTION constexpr auto category(Text) {
  static_assert(detail::is_name<Text>::value, IKET_DETAIL_A_TEXT);
  return detail::annotation<detail::attribute<detail::about::category, 0, Text>>{};
}
template <unsigned Rgb>
IKET_DETAIL_FUNCTION constexpr auto colour() {
  return detail::annotation<
      detail::attribute<detail::about::colour, 0, detail::colour_text<Rgb>>>{};
}

// Several warps that do one thing, for which one speaks: that of the thread for which `lead` holds.
// Its events stand in a row of the CTA. As always they are of the warp's active lanes, and values
// are the first one's. Made where all lanes of the warp are active, and once, outside of loops.
//
//   const iket::group producer{"producer"_ev, threadIdx.x == 0};
//   iket::range_if load{producer, "load"_ev, k};
template <typename Text>
class group {
 public:
  IKET_DETAIL_FUNCTION group(Text, [[maybe_unused]] bool lead) {
    static_assert(detail::is_name<Text>::value, IKET_DETAIL_A_TEXT);
#if IKET_DETAIL_ON
    // The lead alone would part from its warp at each event, which costs forty cycles.
    speaks_ = __any_sync(__activemask(), lead) != 0;
#endif
  }
  IKET_DETAIL_FUNCTION explicit operator bool() const {
#if IKET_DETAIL_ON
    return speaks_;
#else
    return false;
#endif
  }

 private:
#if defined(IKET_ENABLE)
  bool speaks_ = false;
#endif
};

namespace detail {
template <typename Text>
struct is_speaker<group<Text>> {
  static constexpr bool value = true;
};
}  // namespace detail

// A point in time on the timeline of the warp. `name` is a literal: "load"_ev. With values of the
// first active lane, at most four: any integer, bool, enum, float, double, half, bfloat16, fp8, or
// pointer. No value and the value 0 are told apart; several have names.
//
//   iket::mark("k"_ev, k);
//   iket::mark("tile"_ev("m"_ev, "n"_ev), m, n);
template <typename Name, typename... T>
IKET_DETAIL_FUNCTION void mark(Name name, T... value) {
  detail::event<detail::kind::mark>(name, value...);
}
template <typename Name, typename... T>
IKET_DETAIL_FUNCTION void mark(condition when, Name name, T... value) {
  if (when) mark(name, value...);
}
template <typename Group, typename Name, typename... T>
IKET_DETAIL_FUNCTION void mark(group<Group> speaker, Name, T... value) {
  if (speaker) mark(detail::grouped_name<Group, Name>{}, value...);
}

// A macro, because it is in one line of the source: of any other ptxas does not know the caller.
#define IKET_DETAIL_EACH_LANE(...)                                                       \
  unsigned number;                                                                       \
  asm("mov.u32 %0, %%laneid;" : "=r"(number));                                           \
  for (unsigned left = __activemask(); left != 0; left &= left - 1) {                    \
    if (number + 1 == static_cast<unsigned>(__ffs(static_cast<int>(left)))) __VA_ARGS__; \
  }

// For the rare case: a mark of each active lane, one after the other, with its number in the warp
// ("lane") and up to three values of its own. It costs a mark a lane.
template <typename Name, typename... T>
IKET_DETAIL_FUNCTION void mark_each_lane(Name, T... value) {
  static_assert(sizeof...(T) <= 3, "iket: the lane's number is a value, so that three are left");
  using named = typename detail::each_lane<Name, static_cast<int>(sizeof...(T))>::type;
#if IKET_DETAIL_ON
  if constexpr (detail::is_kept<Name>::value) {
    IKET_DETAIL_EACH_LANE(mark(named{}, static_cast<unsigned char>(number), value...));
    return;
  }
#endif
  mark(named{}, static_cast<unsigned char>(0), value...);
}
#undef IKET_DETAIL_EACH_LANE

// Opens a range that the next pop() of the same warp closes; ranges nest. Prefer `range` where the
// two ends lie in one scope: its end carries the name, so that a mix-up is seen.
template <typename Name, typename... T>
IKET_DETAIL_FUNCTION void push(Name name, T... value) {
  static_assert(!detail::is_apart<Name>::value,
                "iket: a pop has no name, so that a push has no lane: use a range or a token");
  detail::event<detail::kind::push>(name, value...);
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
  template <typename... T>
  [[nodiscard]] IKET_DETAIL_FUNCTION explicit range(Name name, T... value) {
    detail::event<detail::kind::range_begin>(name, value...);
  }
  IKET_DETAIL_FUNCTION ~range() { detail::event<detail::kind::range_end>(Name{}); }
  range(const range&) = delete;
  range& operator=(const range&) = delete;
};

// The same if a condition holds where it begins, or in the thread that speaks for a group:
//   iket::range_if r{iket::only_if(k == 0), "mma"_ev};
template <typename Name, typename Group = detail::no_name>
class range_if {
 public:
  template <typename... T>
  [[nodiscard]] IKET_DETAIL_FUNCTION range_if(condition when, Name, T... value) : when_(when) {
    if (when_) detail::event<detail::kind::range_begin>(name{}, value...);
  }
  template <typename... T>
  [[nodiscard]] IKET_DETAIL_FUNCTION range_if(group<Group> speaker, Name, T... value)
      : when_(only_if(static_cast<bool>(speaker))) {
    if (when_) detail::event<detail::kind::range_begin>(name{}, value...);
  }
  IKET_DETAIL_FUNCTION ~range_if() {
    if (when_) detail::event<detail::kind::range_end>(name{});
  }
  range_if(const range_if&) = delete;
  range_if& operator=(const range_if&) = delete;

 private:
  using name = typename detail::name_in<Group, Name>::type;

  condition when_;
};

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
// A range whose start has values has values of the same types at its end. The first end counts. Of
// a warp whose lanes hold different tokens the first active lane's is ended. In shared memory a
// token is no sentinel before it is assigned.
template <typename Name, typename... Values>
class token {
  static_assert((detail::payload_type<Values>::known && ... && true),
                "iket: the values of a token are numbers or pointers, neither const nor more");

 public:
  token() = default;  // of no range
  template <typename... Others>
  IKET_DETAIL_FUNCTION token& operator=(const token<Name, Others...>&) {
    static_assert(detail::is_same<token, token<Name, Others...>>::value,
                  "iket: this token's payload is of another type: declare the token with that one, "
                  "or cast the value");
    return *this;
  }

 private:
  template <typename N, typename... T>
  friend IKET_DETAIL_FUNCTION token<N, T...> start(N name, T... value);
  template <typename N, typename... Opened, typename... T>
  friend IKET_DETAIL_FUNCTION void end(token<N, Opened...> closed, T... value);

#if defined(IKET_ENABLE)
  unsigned clock_ = 0;  // of the begin
#endif
};

// Opens such a range and returns its token.
template <typename Name, typename... T>
[[nodiscard]] IKET_DETAIL_FUNCTION token<Name, T...> start(Name name, T... value) {
  token<Name, T...> opened;
#if defined(IKET_ENABLE)
  opened.clock_ = detail::event<detail::kind::token_begin>(name, value...);
#else
  detail::event<detail::kind::token_begin>(name, value...);
#endif
  return opened;
}
template <typename Group, typename Name, typename... T>
[[nodiscard]] IKET_DETAIL_FUNCTION token<detail::grouped_name<Group, Name>, T...> start(
    group<Group> speaker, Name, T... value) {
  token<detail::grouped_name<Group, Name>, T...> opened;
  if (speaker) opened = start(detail::grouped_name<Group, Name>{}, value...);
  return opened;
}

// Closes the range that this token opened, if it is of one.
template <typename Name, typename... Opened, typename... T>
IKET_DETAIL_FUNCTION void end(token<Name, Opened...> closed, T... value) {
  static_assert(detail::is_same<token<Name, Opened...>, token<Name, T...>>::value,
                "iket: the end of a range has a payload if its start has one, of the same type");
#if defined(IKET_ENABLE)
  detail::end_event(Name{}, closed.clock_, value...);
#else
  static_cast<void>(closed);
  (static_cast<void>(value), ...);
#endif
}
template <typename Group, typename Name, typename... Opened, typename... T>
IKET_DETAIL_FUNCTION void end(group<Group> speaker, token<Name, Opened...> closed, T... value) {
  static_assert(detail::is_of_group<Name, Group>::value,
                "iket: the range of this token is not of this group: who starts it ends it");
  if (speaker) end(closed, value...);
}

// A token of no range, of the type that start() returns for this name, and payload types if any.
template <typename... Values, typename Name>
[[nodiscard]] IKET_DETAIL_FUNCTION token<Name, Values...> sentinel(Name) {
  static_assert(detail::is_name<Name>::value, IKET_DETAIL_A_TEXT);
  return {};
}
template <typename... Values, typename Group, typename Name>
[[nodiscard]] IKET_DETAIL_FUNCTION token<detail::grouped_name<Group, Name>, Values...> sentinel(
    group<Group>, Name) {
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
template <typename Group, typename Name, typename Id>
IKET_DETAIL_FUNCTION void flow_out(group<Group> speaker, Name, Id id) {
  if (speaker) flow_out(detail::grouped_name<Group, Name>{}, id);
}
template <typename Group, typename Name, typename Id>
IKET_DETAIL_FUNCTION void flow_in(group<Group> speaker, Name, Id id) {
  if (speaker) flow_in(detail::grouped_name<Group, Name>{}, id);
}
// Of a barrier in shared memory (8 bytes aligned, as mbarriers and cuda::barrier are) in one of its
// phases: the same number wherever in the CTA it is asked for.
IKET_DETAIL_FUNCTION unsigned barrier_id(const void* barrier, unsigned phase) {
  return static_cast<unsigned>(reinterpret_cast<unsigned long long>(barrier)) | (phase & 1u);
}

// What depends on what by design, between names of events; no code at all, wherever in the kernel
// it stands. Label and `via` are optional.
//
//   iket::dag("gemm"_ev)
//       .edge("tma"_ev, "mma"_ev, iket::label("smem[s]"_ev), iket::via("mbarrier"_ev))
//       .edge("mma"_ev, "store"_ev);
template <typename Text>
IKET_DETAIL_FUNCTION constexpr detail::dag_of<Text> dag(Text) {
  static_assert(detail::is_name<Text>::value, IKET_DETAIL_A_TEXT);
  return {};
}
template <typename Text>
IKET_DETAIL_FUNCTION constexpr auto label(Text) {
  static_assert(detail::is_name<Text>::value, IKET_DETAIL_A_TEXT);
  return detail::annotation<detail::attribute<detail::about::label, 0, Text>>{};
}
template <typename Text>
IKET_DETAIL_FUNCTION constexpr auto via(Text) {
  static_assert(detail::is_name<Text>::value, IKET_DETAIL_A_TEXT);
  return detail::annotation<detail::attribute<detail::about::via, 0, Text>>{};
}

// A pair of the SM's clock and the GPU's timer, to place what a long-lived warp does in time: each
// warp has one where it begins and one where it ends, and the SM's clock wanders in between. It
// costs a mark with payload and the reading of the timer; a few in a millisecond are plenty.
IKET_DETAIL_FUNCTION void sync() {
#if IKET_DETAIL_ON && !IKET_DETAIL_OFFICIAL
  if constexpr (detail::is_kept<detail::sync_text>::value) {
    detail::event<detail::kind::sync>(detail::sync_text{}, detail::timer());
  }
#endif
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

  // What the values are called.
  template <typename... Values>
  IKET_DETAIL_FUNCTION constexpr detail::name_of_values<event_name, Values...> operator()(
      Values...) const {
    static_assert((detail::is_name<Values>::value && ...),
                  "iket: a value's name is a literal with _ev behind it: \"tile\"_ev(\"m\"_ev)");
    static_assert(sizeof...(Values) <= 4, "iket: an event has at most four values");
    return {};
  }
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

// The same for C++17: names are string literals, behind which stand the values, at most four;
// several are called what they are spelled.
//   IKET_MARK("tile", m, n);  IKET_RANGE("mma", k);  IKET_PUSH("load");  IKET_POP();
// IKET_RANGE lasts to the end of the enclosing scope. A token is declared with its name, and the
// type of its payload if it has one; until it is started it is a sentinel:
//   IKET_TOKEN(load, "load", int);  IKET_START(load, k);  IKET_END(load, k);
//   IKET_FLOW_OUT("full", k);  IKET_FLOW_IN("full", k);
// On a condition, and with a level:
//   IKET_MARK_IF(k % 16 == 0, "k", k);  IKET_RANGE_IF(k % 16 == 0, "mma", k);
//   IKET_MARK_AT(2, "k", k);  IKET_RANGE_AT(2, "mma", k);
// For everything else a name, and names of values, as a variable:
//   IKET_NAME(tile, "tile", m, n);  iket::mark(tile, 3, 4);
//   IKET_NAME(mma, "mma");  IKET_NAME(wgmma, "wgmma");
//   iket::range r{mma | iket::lane(wgmma), k};
#define IKET_MARK(...) IKET_DETAIL_EVENT(::iket::mark, __VA_ARGS__, ~)
#define IKET_PUSH(...) IKET_DETAIL_EVENT(::iket::push, __VA_ARGS__, ~)
#define IKET_POP() ::iket::pop()
#define IKET_RANGE(...) IKET_DETAIL_RANGE(__COUNTER__, __VA_ARGS__, ~)

#define IKET_MARK_IF(condition, ...)                        \
  do {                                                      \
    if (::iket::only_if(condition)) IKET_MARK(__VA_ARGS__); \
  } while (0)
#define IKET_RANGE_IF(condition, ...) IKET_DETAIL_RANGE_IF(__COUNTER__, condition, __VA_ARGS__, ~)
#define IKET_MARK_AT(number, ...) IKET_DETAIL_MARK_AT(number, __VA_ARGS__, ~)
#define IKET_RANGE_AT(number, ...) IKET_DETAIL_RANGE_AT(__COUNTER__, number, __VA_ARGS__, ~)

#define IKET_TOKEN(...) IKET_DETAIL_TOKEN(__VA_ARGS__, ~)
#define IKET_START(...) IKET_DETAIL_START(__VA_ARGS__, ~)
#define IKET_END(...) ::iket::end(__VA_ARGS__)
#define IKET_FLOW_OUT(text, id) IKET_DETAIL_EVENT(::iket::flow_out, text, id, ~)
#define IKET_FLOW_IN(text, id) IKET_DETAIL_EVENT(::iket::flow_in, text, id, ~)
#define IKET_NAME(...) IKET_DETAIL_VARIABLE(__VA_ARGS__, ~)

#define IKET_DETAIL_VARIABLE(variable, text, ...)                       \
  IKET_DETAIL_DEFINE_NAMED(iket_name_of_##variable, text, __VA_ARGS__); \
  [[maybe_unused]] constexpr iket_name_of_##variable variable {}
#define IKET_DETAIL_TOKEN(variable, text, ...)     \
  IKET_DETAIL_NAME(iket_name_of_##variable, text); \
  ::iket::token<iket_name_of_##variable IKET_DETAIL_VALUES(__VA_ARGS__)> variable
#define IKET_DETAIL_START(variable, ...) \
  ((variable) = ::iket::start(iket_name_of_##variable {} IKET_DETAIL_VALUES(__VA_ARGS__)))
#define IKET_DETAIL_EVENT(function, text, ...)                                \
  do {                                                                        \
    IKET_DETAIL_DEFINE(iket_name, text, __VA_ARGS__);                         \
    IKET_DETAIL_CALL(function(iket_name {} IKET_DETAIL_VALUES(__VA_ARGS__))); \
  } while (0)
#define IKET_DETAIL_CALL(call) call
#define IKET_DETAIL_RANGE(counter, ...) IKET_DETAIL_RANGE_(counter, __VA_ARGS__)
#define IKET_DETAIL_RANGE_(counter, text, ...)                   \
  IKET_DETAIL_DEFINE(iket_name_##counter, text, __VA_ARGS__);    \
  const ::iket::range<iket_name_##counter> iket_range_##counter( \
      iket_name_##counter {} IKET_DETAIL_VALUES(__VA_ARGS__))
#define IKET_DETAIL_RANGE_IF(counter, condition, ...) \
  IKET_DETAIL_RANGE_IF_(counter, condition, __VA_ARGS__)
#define IKET_DETAIL_RANGE_IF_(counter, condition, text, ...)        \
  IKET_DETAIL_DEFINE(iket_name_##counter, text, __VA_ARGS__);       \
  const ::iket::range_if<iket_name_##counter> iket_range_##counter( \
      ::iket::only_if(condition), iket_name_##counter {} IKET_DETAIL_VALUES(__VA_ARGS__))
#define IKET_DETAIL_MARK_AT(number, text, ...)                                        \
  do {                                                                                \
    IKET_DETAIL_DEFINE(iket_name, text, __VA_ARGS__);                                 \
    ::iket::mark(::iket::level<number>(iket_name{}) IKET_DETAIL_VALUES(__VA_ARGS__)); \
  } while (0)
#define IKET_DETAIL_RANGE_AT(counter, number, ...) \
  IKET_DETAIL_RANGE_AT_(counter, number, __VA_ARGS__)
#define IKET_DETAIL_RANGE_AT_(counter, number, text, ...)                          \
  IKET_DETAIL_DEFINE(iket_name_##counter, text, __VA_ARGS__);                      \
  const ::iket::range<::iket::detail::leveled_name<iket_name_##counter, (number)>> \
      iket_range_##counter(::iket::level<(number)>(iket_name_##counter{})          \
                               IKET_DETAIL_VALUES(__VA_ARGS__))
// The trailing ~ tells how many values are before it.
#define IKET_DETAIL_VALUES(...)                                                            \
  IKET_DETAIL_PICK(__VA_ARGS__, IKET_DETAIL_MANY, IKET_DETAIL_MANY, IKET_DETAIL_MANY,      \
                   IKET_DETAIL_MANY, IKET_DETAIL_FOUR, IKET_DETAIL_THREE, IKET_DETAIL_TWO, \
                   IKET_DETAIL_ONE, IKET_DETAIL_NONE, )(__VA_ARGS__)
#define IKET_DETAIL_PICK(a, b, c, d, e, f, g, h, i, pick, ...) pick
#define IKET_DETAIL_MANY(a, b, c, d, ...) , a, b, c, d
#define IKET_DETAIL_FOUR(a, b, c, d, end) , a, b, c, d
#define IKET_DETAIL_THREE(a, b, c, end) , a, b, c
#define IKET_DETAIL_TWO(a, b, end) , a, b
#define IKET_DETAIL_ONE(a, end) , a
#define IKET_DETAIL_NONE(end)
// The type of a name; several values are called what they are spelled.
#define IKET_DETAIL_DEFINE(type, text, ...)                                                \
  IKET_DETAIL_NAME(type##_text, text);                                                     \
  IKET_DETAIL_PICK(__VA_ARGS__, IKET_DETAIL_NAMES_MANY, IKET_DETAIL_NAMES_MANY,            \
                   IKET_DETAIL_NAMES_MANY, IKET_DETAIL_NAMES_MANY, IKET_DETAIL_NAMES_FOUR, \
                   IKET_DETAIL_NAMES_THREE, IKET_DETAIL_NAMES_TWO, IKET_DETAIL_NAMES_ONE,  \
                   IKET_DETAIL_NAMES_NONE, )(type, __VA_ARGS__)
#define IKET_DETAIL_DEFINE_NAMED(type, text, ...)                                            \
  IKET_DETAIL_NAME(type##_text, text);                                                       \
  IKET_DETAIL_PICK(__VA_ARGS__, IKET_DETAIL_NAMES_MANY, IKET_DETAIL_NAMES_MANY,              \
                   IKET_DETAIL_NAMES_MANY, IKET_DETAIL_NAMES_MANY, IKET_DETAIL_NAMES_FOUR,   \
                   IKET_DETAIL_NAMES_THREE, IKET_DETAIL_NAMES_TWO, IKET_DETAIL_NAMES_SINGLE, \
                   IKET_DETAIL_NAMES_NONE, )(type, __VA_ARGS__)
#define IKET_DETAIL_NAMES_NONE(type, end) using type = type##_text
#define IKET_DETAIL_NAMES_ONE(type, a, end) using type = type##_text
#define IKET_DETAIL_NAMES_SINGLE(type, a, end) \
  IKET_DETAIL_NAME(type##_1, #a);              \
  using type = ::iket::detail::name_of_values<type##_text, type##_1>
#define IKET_DETAIL_NAMES_TWO(type, a, b, end) \
  IKET_DETAIL_NAME(type##_1, #a);              \
  IKET_DETAIL_NAME(type##_2, #b);              \
  using type = ::iket::detail::name_of_values<type##_text, type##_1, type##_2>
#define IKET_DETAIL_NAMES_THREE(type, a, b, c, end) \
  IKET_DETAIL_NAME(type##_1, #a);                   \
  IKET_DETAIL_NAME(type##_2, #b);                   \
  IKET_DETAIL_NAME(type##_3, #c);                   \
  using type = ::iket::detail::name_of_values<type##_text, type##_1, type##_2, type##_3>
#define IKET_DETAIL_NAMES_FOUR(type, a, b, c, d, end) \
  IKET_DETAIL_NAME(type##_1, #a);                     \
  IKET_DETAIL_NAME(type##_2, #b);                     \
  IKET_DETAIL_NAME(type##_3, #c);                     \
  IKET_DETAIL_NAME(type##_4, #d);                     \
  using type = ::iket::detail::name_of_values<type##_text, type##_1, type##_2, type##_3, type##_4>
#define IKET_DETAIL_NAMES_MANY(type, a, b, c, d, ...)                               \
  static_assert(type##_text::size() < 0, "iket: an event has at most four values"); \
  IKET_DETAIL_NAMES_FOUR(type, a, b, c, d, ~)
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
