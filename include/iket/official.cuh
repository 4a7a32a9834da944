// SPDX-License-Identifier: Apache-2.0
//
// official.cuh: marks in the form of NVIDIA's IKET, for its collector, run-iket.
//
// Built with -DIKET_ENABLE -DIKET_COMPAT=official, iket.cuh includes this file, which must then lie
// beside it, and its marks become NVIDIA's: metadata arrays in the cubin, and a store of the GPU's
// timer where a mark stands. Ours collects them, too. What NVIDIA's IKET cannot say ends the build
// with a sentence; docs/design/compat.md has the table, and why all of this looks as it does.
//
// Cost    Not collected, a mark is four instructions, six or seven with a payload, and unlike ours
//         it does store: four to sixteen bytes at the top of what the driver reserves of shared
//         memory.
// Ids     1..30 in the order in which the compiler comes to the names (NativeDump, four bytes an
//         event). With -DIKET_COMPAT_EXTENDED from 64 on (ExtendedNativeDump, eight bytes). With
//         -rdc=true always those, a hundred for each file: -DIKET_COMPAT_UNIT=N, N from 0 to 39,
//         tells the files of a program apart, and where two are alike the linker ends the build.
#pragma once

#if !defined(IKET_VERSION)
#error "iket: include <iket/iket.cuh>, which includes this file where it is wanted"
#endif

#if defined(__CUDACC_RDC__) || defined(__CLANG_RDC__)
#define IKET_DETAIL_RDC 1
#else
#define IKET_DETAIL_RDC 0
#endif
#if defined(IKET_COMPAT_UNIT)
#if IKET_COMPAT_UNIT < 0 || IKET_COMPAT_UNIT > 39
#error "iket: IKET_COMPAT_UNIT is a number from 0 to 39, another one for each file of a program"
#endif
#define IKET_DETAIL_UNIT IKET_COMPAT_UNIT
#else
#define IKET_DETAIL_UNIT 0
#endif

#define IKET_DETAIL_LACKS "iket: of NVIDIA's IKET (IKET_COMPAT=official) "

namespace iket {
inline namespace v1 {
namespace detail {
namespace official {

#if IKET_DETAIL_RDC
inline constexpr bool is_extended = true;
inline constexpr int names = 100, first_id = 64 + names * IKET_DETAIL_UNIT;
#elif defined(IKET_COMPAT_EXTENDED)
inline constexpr bool is_extended = true;
inline constexpr int names = 4000, first_id = 64;
#else
inline constexpr bool is_extended = false;
inline constexpr int names = 30, first_id = 1;
#endif
inline constexpr unsigned method = is_extended ? 5 : 3;
inline constexpr unsigned last_id_of_method = is_extended ? 4095 : 31;
inline constexpr int pop_id = 31;
inline constexpr int longest_name = 32;

// The compiler's memory. A claim is a number that a type was given where it was first asked for,
// and has from then on: the friend's type, which is known once `claiming` was instantiated. The
// asker is part of the question, since a compiler remembers answers. Only code for the device asks,
// in one pass of the compiler, so that nobody else could count differently.
template <unsigned Value>
struct number {
  static constexpr unsigned value = Value;
};
#if !(defined(__clang__) && defined(__CUDA__))
#pragma nv_diagnostic push
#pragma nv_diag_suppress 1301  // that the friend is no template, which is what is meant
#endif
template <typename Subject>
struct claim {
  friend __device__ auto claimed(claim<Subject>);
};
#if !(defined(__clang__) && defined(__CUDA__))
#pragma nv_diagnostic pop
#endif
template <typename Subject, unsigned Value>
struct claiming : number<Value> {
  friend __device__ auto claimed(claim<Subject>) { return number<Value>{}; }
};
template <typename Subject, typename Asker, typename = void>
struct is_claimed {
  static constexpr bool value = false;
};
template <typename Subject, typename Asker>
struct is_claimed<Subject, Asker, decltype(static_cast<void>(claimed(claim<Subject>{})))> {
  static constexpr bool value = true;
};
// That of the first who claims it.
template <typename Subject, unsigned Value,
          bool IsClaimed = is_claimed<Subject, number<Value>>::value>
struct first_claim : claiming<Subject, Value> {};
template <typename Subject, unsigned Value>
struct first_claim<Subject, Value, true> : decltype(claimed(claim<Subject>{})){};

// How many names there are before this one: places are taken one after the other.
template <int Place>
struct place {};
template <typename Key, int Low, int High>
struct places_taken {
  static constexpr int middle = Low + (High - Low) / 2;
  IKET_DETAIL_FUNCTION static constexpr int count() {
    if constexpr (Low == High) {
      return Low;
    } else if constexpr (is_claimed<place<middle>, Key>::value) {
      return places_taken<Key, middle + 1, High>::count();
    } else {
      return places_taken<Key, Low, middle>::count();
    }
  }
};
template <typename Key>
struct place_of {
  static constexpr int value = places_taken<Key, 0, names>::count();
  static_assert(claiming<place<value>, 1>::value == 1, "");  // taken at once, and not when asked
};

// A name by its characters: C++17's are types of the places where they stand.
template <char... Character>
struct text {
  static constexpr int size = static_cast<int>(sizeof...(Character));
  IKET_DETAIL_FUNCTION static constexpr unsigned character(int i) {
    constexpr char characters[] = {Character..., 0};
    return i < size ? static_cast<unsigned char>(characters[i]) : 0u;
  }
  // Four of them, as a little-endian word.
  IKET_DETAIL_FUNCTION static constexpr unsigned word(int i) {
    return character(4 * i) | character(4 * i + 1) << 8 | character(4 * i + 2) << 16 |
           character(4 * i + 3) << 24;
  }
  // FNV-1a: the range's id.
  IKET_DETAIL_FUNCTION static constexpr unsigned make_hash() {
    unsigned hash = 0x811c9dc5u;
    for (int i = 0; i < size; ++i) hash = (hash ^ character(i)) * 0x01000193u;
    return hash == 0 ? 1 : hash;
  }
  static constexpr unsigned hash = make_hash();
};
template <typename Name, typename Indices>
struct text_of;
template <typename Name, int... Index>
struct text_of<Name, indices<Index...>> {
  using type = text<Name::at(Index)...>;
};

// Of a name's attributes the last colour; every bit set is a colour that the reader chooses.
inline constexpr unsigned no_colour = 0xffffffffu;
template <typename Attributes>
struct colour_of {
  static constexpr unsigned value = no_colour;
};
template <unsigned Rgb>
struct colour_of<attribute<about::colour, 0, colour_text<Rgb>>> {
  static constexpr unsigned value = Rgb;
};
template <typename... Attributes>
struct colour_of<joined<Attributes...>> {
  IKET_DETAIL_FUNCTION static constexpr unsigned last() {
    unsigned colour = no_colour;
    ((colour = colour_of<Attributes>::value == no_colour ? colour : colour_of<Attributes>::value),
     ...);
    return colour;
  }
  static constexpr unsigned value = last();
};

// Where in a range an event stands, and of what type the range is.
inline constexpr unsigned in_no_range = 0, begins = 1, begins_and_ends = 4;
inline constexpr unsigned start_end = 1, push_pop = 2;
IKET_DETAIL_FUNCTION constexpr unsigned position_of(kind event) {
  return event == kind::push || event == kind::range_begin        ? begins
         : event == kind::token_begin || event == kind::token_end ? begins_and_ends
                                                                  : in_no_range;
}
IKET_DETAIL_FUNCTION constexpr bool has_payload_type(unsigned char number) { return number < 64; }

// Module scope is where the arrays have to be, under names that the collector looks for, but a
// template has no say there: what nvcc makes of its variables is mangled, and a variable in a
// function's asm becomes `$__name__1$2`. So the asm ends the function that it stands in, a function
// of nothing else, which nobody calls; what the compiler writes behind it is the end of another.
#define IKET_DETAIL_DECLARER __device__ __noinline__ __attribute__((used)) void
#define IKET_DETAIL_AT_MODULE_SCOPE(name, array, ...) \
  asm volatile("ret;\n\t}\n" array ";\n.func iket_behind_" name "()\n{\n\t" ::__VA_ARGS__)
// What files of a program share is merged by the linker, which does so by name: all words of an
// array follow from its symbol. What is a file's own, for which such functions are static, is there
// once or the linker complains.
#if IKET_DETAIL_RDC
#define IKET_DETAIL_SHARED ".weak .global .align 4 .b32 "
#else
#define IKET_DETAIL_SHARED ".visible .global .align 4 .b32 "
#endif
#define IKET_DETAIL_OWN ".visible .global .align 4 .b32 "
#define IKET_DETAIL_STRING(...) IKET_DETAIL_STRING_(__VA_ARGS__)
#define IKET_DETAIL_STRING_(...) #__VA_ARGS__

// The module's.
struct whole;
template <typename T>
IKET_DETAIL_DECLARER declare_header() {
  IKET_DETAIL_AT_MODULE_SCOPE("header",
                              IKET_DETAIL_SHARED
                              "__iket_meta_info[12] = "
                              "{48, 0, 5, %0, %1, 60, 0xBABEF19D, 0, 3, 0, 0, 0}",
                              "n"(last_id_of_method), "n"(longest_name));
}
#if IKET_DETAIL_RDC
template <typename T>
static IKET_DETAIL_DECLARER declare_unit() {
  IKET_DETAIL_AT_MODULE_SCOPE(
      "unit_" IKET_DETAIL_STRING(IKET_DETAIL_UNIT),
      ".visible .global .b8 iket_two_files_have_IKET_COMPAT_UNIT_" IKET_DETAIL_STRING(
          IKET_DETAIL_UNIT) "_give_each_its_own", );
}
#endif

template <typename Text, unsigned Type, unsigned Colour>
struct range {
  static constexpr long long id = Text::hash, colour = Colour;  // unsigned, also as text
  static constexpr unsigned type = Type, pair_mode = Type == start_end ? 1 : 0;
  using name = Text;
};
template <typename T>
IKET_DETAIL_DECLARER declare_range() {
  using name = typename T::name;
  IKET_DETAIL_AT_MODULE_SCOPE("range_%0_%2_%1",
                              IKET_DETAIL_SHARED
                              "__iket_range_decl_id_%0_%2_%1_attrs[18] = "
                              "{72, 0, %0, %1, %2, %3, 0, 0, "
                              "%4, %5, %6, %7, %8, %9, %10, %11, %12, 0}",
                              "n"(T::id), "n"(T::colour), "n"(T::type), "n"(T::pair_mode),
                              "n"(name::size), "n"(name::word(0)), "n"(name::word(1)),
                              "n"(name::word(2)), "n"(name::word(3)), "n"(name::word(4)),
                              "n"(name::word(5)), "n"(name::word(6)), "n"(name::word(7)));
}

// One for each name, position and type of payload; its id is the next.
template <typename Text, unsigned Position, unsigned Payload>
struct event {
  static constexpr int place = place_of<event>::value;
  static constexpr int id = first_id + place;
  static constexpr unsigned position = Position, payload = Payload;
  static constexpr unsigned range_id = Position == in_no_range ? 0 : Text::hash;
  using name = Text;
};
template <typename T>
static IKET_DETAIL_DECLARER declare_event() {
  using name = typename T::name;
  IKET_DETAIL_AT_MODULE_SCOPE(
      "event_%0",
      IKET_DETAIL_OWN
      "__iket_evt_decl_id_%0_attrs[15] = "
      "{60, %0, %1, %2, %3, %4, "
      "%5, %6, %7, %8, %9, %10, %11, %12, %13}",
      "n"(T::id), "n"(method), "n"(T::payload), "n"(T::position), "n"(T::range_id), "n"(name::size),
      "n"(name::word(0)), "n"(name::word(1)), "n"(name::word(2)), "n"(name::word(3)),
      "n"(name::word(4)), "n"(name::word(5)), "n"(name::word(6)), "n"(name::word(7)));
}
#undef IKET_DETAIL_AT_MODULE_SCOPE
#undef IKET_DETAIL_DECLARER
#undef IKET_DETAIL_SHARED
#undef IKET_DETAIL_OWN

// Where placeholders store: see window() in iket.cuh, and docs/design/compat.md for the address.
__device__ __forceinline__ unsigned store_window() {
  unsigned address;
#if __CUDA_ARCH__ >= 1200
  asm("mov.u32 %0, 0x3f0;" : "=r"(address));  // no clusters
#else
  asm("{\n\t.reg .b32 rank;\n\t"
      "mov.u32 rank, %%cluster_ctarank;\n\t"
      "mad.lo.u32 %0, rank, 0x1000000, 0x3f0;\n\t}"
      : "=r"(address));
#endif
  return address;
}

// The collector finds timer, store and trigger, and makes its own of them. With a payload one lane
// is elected. Volatile, because ptxas may make one store of two others, as it does where they are
// not guarded, and the collector does not take that.
#define IKET_DETAIL_NATIVE(guard)                              \
  "mov.u32 t, %%globaltimer_lo;\n\tor.b32 t, t, %0;\n\t" guard \
  "st.volatile.shared.u32 [%1], "                              \
  "t;\n\t"
#define IKET_DETAIL_EXTENDED(guard)                           \
  "mov.u32 t, %%globaltimer_lo;\n\tmov.u32 id, %0;\n\t" guard \
  "st.volatile.shared.v2.u32 [%1], {t, id};\n\t"
#define IKET_DETAIL_ELECTED "activemask.b32 lanes;\n\telect.sync _|p, lanes;\n\t"
#define IKET_DETAIL_PLACE(body, ...)                                    \
  asm volatile("{\n\t.reg .b32 t, id, lanes;\n\t.reg .pred p;\n\t" body \
               "pmevent.mask %0;\n\t}" ::"n"(Id),                       \
               "r"(store_window())__VA_ARGS__                           \
               : "memory")
template <int Id>
__device__ __forceinline__ void place_event() {
  if constexpr (is_extended) {
    IKET_DETAIL_PLACE(IKET_DETAIL_EXTENDED(""), );
  } else {
    IKET_DETAIL_PLACE(IKET_DETAIL_NATIVE(""), );
  }
}
template <int Id>
__device__ __forceinline__ void place_event(unsigned payload) {
  if constexpr (is_extended) {
    IKET_DETAIL_PLACE(
        IKET_DETAIL_ELECTED IKET_DETAIL_EXTENDED("@p ") "@p st.volatile.shared.b32 [%1+8], %2;\n\t",
        , "r"(payload));
  } else {
    IKET_DETAIL_PLACE(
        IKET_DETAIL_ELECTED IKET_DETAIL_NATIVE("@p ") "@p st.volatile.shared.b32 [%1+4], %2;\n\t", ,
        "r"(payload));
  }
}
template <int Id>
__device__ __forceinline__ void place_event(unsigned long long payload) {
  if constexpr (is_extended) {
    IKET_DETAIL_PLACE(
        IKET_DETAIL_ELECTED IKET_DETAIL_EXTENDED("@p ") "@p st.volatile.shared.b64 [%1+8], %2;\n\t",
        , "l"(payload));
  } else {
    IKET_DETAIL_PLACE(
        IKET_DETAIL_ELECTED IKET_DETAIL_NATIVE("@p ") "@p st.volatile.shared.b64 [%1+8], %2;\n\t", ,
        "l"(payload));
  }
}
#undef IKET_DETAIL_PLACE
#undef IKET_DETAIL_ELECTED
#undef IKET_DETAIL_EXTENDED
#undef IKET_DETAIL_NATIVE

// A payload's bits, and zeros above them.
template <typename T>
__device__ __forceinline__ auto word_of(T value) {
  if constexpr (payload_type<T>::is_wide) {
    return static_cast<unsigned long long>(bits_of(value));
  } else {
    return static_cast<unsigned>(bits_of(value)) & (0xffffffffu >> (32 - 8 * sizeof(T)));
  }
}

// True, or the build ends with what NVIDIA's IKET lacks, and what to do.
template <typename Name, kind Kind, typename... T>
IKET_DETAIL_FUNCTION constexpr bool can_be_said() {
  constexpr bool is_flow = Kind == kind::flow_out || Kind == kind::flow_in;
  constexpr bool has_a_row = has_row<typename attributes_of<Name>::type>::value;
  constexpr bool has_one_value = sizeof...(T) <= 1;
  constexpr bool has_types = (has_payload_type(payload_type<T>::number) && ... && true);
  constexpr bool fits = Name::size() > 0 && Name::size() <= longest_name;
  static_assert(!is_flow, IKET_DETAIL_LACKS "there are no flows: put marks in their place");
  static_assert(!has_a_row, IKET_DETAIL_LACKS
                "lanes and groups have no rows: leave them away, and use a token for what does not "
                "nest, a condition for who speaks");
  static_assert(has_one_value, IKET_DETAIL_LACKS
                "an event has one value: give one, or pack them into an integer of 64 bits");
  static_assert(has_types, IKET_DETAIL_LACKS
                "a payload is an integer, float, double or pointer: cast bool and fp8 to an "
                "integer, half and bfloat16 to float");
  static_assert(fits, IKET_DETAIL_LACKS "a name has 1 to 32 bytes: shorten this one");
  return !is_flow && !has_a_row && has_one_value && has_types && fits;
}

template <typename Text>
struct type_of_range {};
template <typename Text>
struct colour_of_range {};
template <typename Event, unsigned Colour>
__device__ __forceinline__ void declare() {
  static_assert(is_extended || Event::place < names, IKET_DETAIL_LACKS
                "a file has at most 30 names of this kind of event: -DIKET_COMPAT_EXTENDED makes "
                "room for 4000, and an event twice as large");
  static_assert(!is_extended || Event::place < names, IKET_DETAIL_LACKS
                "there are too many names: at most 4000, with -rdc=true 100 a file");
  if constexpr (Event::place < names) {
    static_cast<void>(&declare_header<whole>);
#if IKET_DETAIL_RDC
    static_cast<void>(&declare_unit<whole>);
#endif
    static_cast<void>(&declare_event<Event>);
  }
  if constexpr (Event::position != in_no_range) {
    using text = typename Event::name;
    constexpr unsigned type = Event::position == begins ? push_pop : start_end;
    constexpr bool is_of_type = first_claim<type_of_range<text>, type>::value == type;
    constexpr bool is_of_colour = first_claim<colour_of_range<text>, Colour>::value == Colour;
    static_assert(is_of_type, IKET_DETAIL_LACKS
                  "ranges of one name are all of tokens, or none is: rename one of them");
    static_assert(is_of_colour, IKET_DETAIL_LACKS
                  "ranges of one name have one colour: give all of them the same");
    if constexpr (is_of_type && is_of_colour) {
      static_cast<void>(&declare_range<range<text, type, Colour>>);
    }
  }
}

template <kind Kind, typename Name, typename... T>
__device__ __forceinline__ void emit(T... value) {
  if constexpr (Kind == kind::pop || Kind == kind::range_end) {
    place_event<pop_id>();
  } else if constexpr (can_be_said<Name, Kind, T...>()) {
    using text = typename text_of<Name, typename make_indices<Name::size()>::type>::type;
    using event = official::event<text, position_of(Kind),
                                  payload_type<typename first_of<T...>::type>::number>;
    declare<event, colour_of<typename attributes_of<Name>::type>::value>();
    place_event<event::id>(word_of(value)...);
  }
}

}  // namespace official
}  // namespace detail
}  // namespace v1
}  // namespace iket

#undef IKET_DETAIL_LACKS
#undef IKET_DETAIL_STRING_
#undef IKET_DETAIL_STRING
#undef IKET_DETAIL_UNIT
#undef IKET_DETAIL_RDC
