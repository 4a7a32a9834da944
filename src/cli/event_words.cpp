#include "cli/event_words.h"

#include <fmt/format.h>

#include "cli/terminal.h"

namespace iket::cli {

std::string KindText(capture::EventKind kind) {
  switch (kind) {
    case capture::EventKind::kMark:
      return "mark";
    case capture::EventKind::kPush:
      return "push";
    case capture::EventKind::kPop:
      return "pop";
    case capture::EventKind::kRangeBegin:
      return "range begin";
    case capture::EventKind::kTokenEither:
      return "token, either end";
    case capture::EventKind::kRangeEnd:
      return "range end";
    case capture::EventKind::kTokenBegin:
      return "token begin";
    case capture::EventKind::kTokenEnd:
      return "token end";
    case capture::EventKind::kFlowOut:
      return "flow out";
    case capture::EventKind::kFlowIn:
      return "flow in";
    case capture::EventKind::kSync:
      return "clock pair";
  }
  return fmt::format("kind {}", static_cast<unsigned>(kind));
}

std::string PayloadText(capture::PayloadType type) {
  switch (capture::TypeOf(type)) {
    case capture::PayloadType::kNone:
      return "";
    case capture::PayloadType::kI8:
      return "i8";
    case capture::PayloadType::kU8:
      return "u8";
    case capture::PayloadType::kI16:
      return "i16";
    case capture::PayloadType::kU16:
      return "u16";
    case capture::PayloadType::kI32:
      return "i32";
    case capture::PayloadType::kU32:
      return "u32";
    case capture::PayloadType::kI64:
      return "i64";
    case capture::PayloadType::kU64:
      return "u64";
    case capture::PayloadType::kF32:
      return "f32";
    case capture::PayloadType::kF64:
      return "f64";
    case capture::PayloadType::kPointer:
      return "pointer";
    case capture::PayloadType::kBool:
      return "bool";
    case capture::PayloadType::kF16:
      return "f16";
    case capture::PayloadType::kBf16:
      return "bf16";
    case capture::PayloadType::kE4m3:
      return "e4m3";
    case capture::PayloadType::kE5m2:
      return "e5m2";
  }
  return fmt::format("type {}", static_cast<unsigned>(type));
}

std::string PlaceText(std::string_view file, uint32_t line) {
  if (line == 0) return "";
  return Printable(fmt::format("{}:{}", file.substr(file.rfind('/') + 1), line));
}

}  // namespace iket::cli
