// SPDX-License-Identifier: Apache-2.0
//
// iket_device_apis.cuh: the macros by which CUB is annotated.
//
// CUB includes a header of this name where _CCCL_ENABLE_IKET is defined, and calls what stands here
// with names that it declares at namespace scope. So
//
//   nvcc -D_CCCL_ENABLE_IKET -DIKET_ENABLE -I<iket>/include app.cu
//
// shows what CUB's scans do. Events are marks of iket.cuh, at no other cost, and without
// IKET_ENABLE nothing is left of them; with IKET_COMPAT=official they are NVIDIA's. Code of your
// own may use either; a name here is an identifier, declared once in its namespace:
//
//   CREATE_IKET_PUSH_POP_RANGE(Load);     IKET_RANGE_PUSH(Load);  IKET_RANGE_POP();
//   CREATE_IKET_START_END_RANGE(Squad);   IKET_RANGE_START(Squad);  IKET_RANGE_END(Squad);
//   CREATE_IKET_MARKER(Ready);            IKET_MARKER(Ready);
//
// and with a value, whose type is declared:
//
//   CREATE_IKET_START_END_RANGE_EX(Wait, unsigned, iket::IketEventPairMode::kNameOnly);
//   IKET_RANGE_START_EX(Wait, k);  IKET_RANGE_END_EX(Wait, k);
//
// A range of start and end has no token: an end closes the range of its name that was started last
// by the warp and is open. Such ranges need not nest in others, so each name has a row of its own.
//
// IKET_BUILD_ENABLED, by which NVIDIA's header is switched on, is IKET_ENABLE. That header has not
// been published: the names are those that public code calls, and IKET_MARKER is a guess.
#pragma once

#if defined(IKET_BUILD_ENABLED) && !defined(IKET_ENABLE)
#if IKET_BUILD_ENABLED + 0
#if defined(IKET_VERSION)
#error "iket: iket.cuh was included without marks: build with -DIKET_ENABLE"
#endif
#define IKET_ENABLE 1
#endif
#endif

#include "iket.cuh"

namespace iket {
inline namespace v1 {

// What tells which end is of which start.
enum class IketEventPairMode { kInvalid = 0, kNameOnly = 1, kNameAndPayload = 2 };

namespace detail {

// A name that stands at namespace scope, with the type of its value; `void` for none.
template <typename Text, typename Value, kind Kind>
struct named_event {
  template <typename T>
  IKET_DETAIL_FUNCTION static void emit(T value) {
    static_assert(!is_same<Value, void>::value,
                  "iket: this name has no value: declare it with the _EX form, and its type");
    if constexpr (!is_same<Value, void>::value) event<Kind>(Text{}, static_cast<Value>(value));
  }
  IKET_DETAIL_FUNCTION static void emit() {
    static_assert(is_same<Value, void>::value,
                  "iket: this name is declared with a value: use the _EX form, and give it");
    if constexpr (is_same<Value, void>::value) event<Kind>(Text{});
  }
};

template <typename Text, typename Value>
struct named_marker {
  using marked = named_event<Text, Value, kind::mark>;
};
template <typename Text, typename Value>
struct named_push_pop {
  using pushed = named_event<Text, Value, kind::push>;
};
// NVIDIA's have one event for both ends, as of a token. Ours say which end they are.
template <typename Text, typename Value, IketEventPairMode Mode>
struct named_start_end {
  static_assert(Mode == IketEventPairMode::kNameOnly,
                "iket: ranges are told apart by name alone: kNameOnly, or a token of iket.cuh");
#if IKET_DETAIL_OFFICIAL
  using started = named_event<Text, Value, kind::token_begin>;
  using ended = named_event<Text, Value, kind::token_end>;
#else
  using on_its_row = annotated_name<Text, attribute<about::lane, 0, Text>>;
  using started = named_event<on_its_row, Value, kind::range_begin>;
  using ended = named_event<on_its_row, Value, kind::range_end>;
#endif
};

}  // namespace detail
}  // namespace v1
}  // namespace iket

// Types, and not variables, so that a use in a function is of the name at namespace scope even
// where a parameter of a template has that name, too.
#define CREATE_IKET_MARKER(name) CREATE_IKET_MARKER_EX(name, void)
#define CREATE_IKET_MARKER_EX(name, type)       \
  IKET_DETAIL_NAME(iket_text_of_##name, #name); \
  using iket_marker_##name = ::iket::detail::named_marker<iket_text_of_##name, type>
#define IKET_MARKER(name) iket_marker_##name::marked::emit()
#define IKET_MARKER_EX(name, value) iket_marker_##name::marked::emit(value)

#define CREATE_IKET_PUSH_POP_RANGE(name) CREATE_IKET_PUSH_POP_RANGE_EX(name, void)
#define CREATE_IKET_PUSH_POP_RANGE_EX(name, type) \
  IKET_DETAIL_NAME(iket_text_of_##name, #name);   \
  using iket_push_pop_##name = ::iket::detail::named_push_pop<iket_text_of_##name, type>
#define IKET_RANGE_PUSH(name) iket_push_pop_##name::pushed::emit()
#define IKET_RANGE_PUSH_EX(name, value) iket_push_pop_##name::pushed::emit(value)
#define IKET_RANGE_POP() ::iket::pop()

#define CREATE_IKET_START_END_RANGE(name) \
  CREATE_IKET_START_END_RANGE_EX(name, void, ::iket::IketEventPairMode::kNameOnly)
#define CREATE_IKET_START_END_RANGE_EX(name, type, mode) \
  IKET_DETAIL_NAME(iket_text_of_##name, #name);          \
  using iket_start_end_##name = ::iket::detail::named_start_end<iket_text_of_##name, type, mode>
#define IKET_RANGE_START(name) iket_start_end_##name::started::emit()
#define IKET_RANGE_START_EX(name, value) iket_start_end_##name::started::emit(value)
#define IKET_RANGE_END(name) iket_start_end_##name::ended::emit()
#define IKET_RANGE_END_EX(name, value) iket_start_end_##name::ended::emit(value)
