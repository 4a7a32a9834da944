#include "inject/jit_options.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace iket::inject {
namespace {

// About logs and times, of which the driver writes both kinds in one call only.
bool AsksForAnswers(CUjit_option option) {
  switch (option) {
    case CU_JIT_WALL_TIME:
    case CU_JIT_INFO_LOG_BUFFER:
    case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
    case CU_JIT_ERROR_LOG_BUFFER:
    case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
      return true;
    default:
      return false;
  }
}

// Options whose value the driver replaces.
bool ValueIsAnswer(CUjit_option option) {
  return option == CU_JIT_WALL_TIME || option == CU_JIT_THREADS_PER_BLOCK ||
         option == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES ||
         option == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES;
}

}  // namespace

JitOptions::JitOptions(Attempt attempt, unsigned count, const CUjit_option* options, void** values)
    : values_(values), answered_(attempt == Attempt::kLoad ? load_ : link_) {
  const auto add = [&](List& list, size_t i) {
    list.options.push_back(options[i]);
    list.values.push_back(values[i]);
    list.source.push_back(i);
  };
  for (size_t i = 0; options != nullptr && values != nullptr && i < count; ++i) {
    if (attempt == Attempt::kLoad || !AsksForAnswers(options[i])) add(load_, i);
    // The linker takes exact matches only, and says so by an error.
    const bool links = options[i] != CU_JIT_FALLBACK_STRATEGY;
    if (attempt == Attempt::kCompileAndLoad && links) add(link_, i);
  }
  CopyLog(CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES);
  CopyLog(CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
}

void JitOptions::CopyLog(CUjit_option buffer, CUjit_option size) {
  const auto value = [this](CUjit_option option) -> void** {
    const auto at = std::find(answered_.options.begin(), answered_.options.end(), option);
    return at != answered_.options.end() ? &answered_.values[at - answered_.options.begin()]
                                         : nullptr;
  };
  void** const text = value(buffer);
  void** const bytes = value(size);
  if (text == nullptr || *text == nullptr || bytes == nullptr) return;
  const auto capacity = reinterpret_cast<uintptr_t>(*bytes);  // an unsigned in a pointer's place
  if (capacity == 0) return;
  Log log{.to = static_cast<char*>(*text),
          .copy = std::make_unique<char[]>(capacity),
          .size = capacity};
  *text = log.copy.get();
  logs_.push_back(std::move(log));
}

void JitOptions::GiveBack() const noexcept {
  for (const Log& log : logs_) {
    const size_t length = strnlen(log.copy.get(), log.size);
    std::memcpy(log.to, log.copy.get(), std::min(length + 1, log.size));
  }
  for (size_t i = 0; i < answered_.options.size(); ++i) {
    if (ValueIsAnswer(answered_.options[i])) values_[answered_.source[i]] = answered_.values[i];
  }
}

}  // namespace iket::inject
