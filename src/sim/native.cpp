#include "sim/native.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "sim/cta.h"
#include "sim/heap.h"
#include "sim/image.h"
#include "sim/memory_access.h"
#include "sim/print_fifo.h"

namespace iket::sim {
namespace {

// The calling convention: arguments from R4 on, the result in R4, the return address in R20:R21.
constexpr uint32_t kFirstArgument = 4, kReturnAddress = 20;
constexpr size_t kMostText = 1 << 16;

uint64_t Argument(Warp& warp, uint32_t lane, uint32_t word) {
  return uint64_t{warp.Register(kFirstArgument + word + 1, lane)} << 32 |
         warp.Register(kFirstArgument + word, lane);
}
// Makes the call the present instruction of the warp: faults of a native function stand there.
void StandAtCall(Warp& warp) {
  const uint32_t lane = warp.FirstLane();
  const uint64_t back =
      uint64_t{warp.Register(kReturnAddress + 1, lane)} << 32 | warp.Register(kReturnAddress, lane);
  const uint64_t index = (back - warp.launch->image->code_base()) / sass::kInstructionBytes;
  if (index != 0 && index < warp.code_size) warp.at = static_cast<uint32_t>(index) - 1;
}
void Return(Warp& warp) {
  const uint64_t base = warp.launch->code_base;
  uint32_t left = warp.exec;
  const uint32_t all = warp.exec;
  while (left != 0) {
    const auto first = static_cast<uint32_t>(std::countr_zero(left));
    const auto address = [&](uint32_t lane) {
      return uint64_t{warp.Register(kReturnAddress + 1, lane)} << 32 |
             warp.Register(kReturnAddress, lane);
    };
    const uint64_t to = address(first);
    uint32_t together = 0;
    for (uint32_t mask = left; mask != 0; mask &= mask - 1) {
      const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
      if (address(lane) == to) together |= 1u << lane;
    }
    const uint64_t index = (to - base) / sass::kInstructionBytes;
    if (to < base || index >= warp.code_size) {
      warp.Raise(Fault::Kind::kInvalidPc, first, to,
                 fmt::format("a return to {:#x}, where there is no code", to));
      return;
    }
    left &= ~together;
    (void)all;
    warp.Branch(together, static_cast<uint32_t>(index));
  }
}
// A C string of the device; what is longer than kMostText is cut.
std::string Text(Warp& warp, uint32_t lane, uint64_t address) {
  std::string text;
  while (text.size() < kMostText) {
    const std::byte* const byte = Access(warp, Space::kGeneric, lane, address++, 1, false);
    if (byte == nullptr || *byte == std::byte{0}) break;
    text.push_back(static_cast<char>(*byte));
  }
  return text;
}

// One conversion of a format with its argument. The arguments lie one after another, each aligned
// to its size: 4 bytes for integers, 8 for long ones, pointers and doubles.
class Formatter {
 public:
  Formatter(Warp& warp, uint32_t lane, uint64_t arguments)
      : warp_(warp), lane_(lane), at_(arguments) {}

  std::string Format(const std::string& format) {
    std::string out;
    for (size_t i = 0; i < format.size() && !warp_.faulted; ++i) {
      if (format[i] != '%') {
        out.push_back(format[i]);
        continue;
      }
      if (i + 1 < format.size() && format[i + 1] == '%') {
        out.push_back('%');
        ++i;
        continue;
      }
      std::string spec = "%";
      bool wide = false;
      for (++i; i < format.size(); ++i) {
        const char c = format[i];
        if (c == '*') {
          spec += std::to_string(static_cast<int32_t>(Next(4)));
        } else if (std::strchr("-+ #0123456789.", c) != nullptr) {
          spec.push_back(c);
        } else if (std::strchr("hljztL", c) != nullptr) {
          wide |= c == 'l' || c == 'j' || c == 'z' || c == 't';
        } else {
          break;
        }
      }
      if (i < format.size() && spec.size() < 32) out += One(Bounded(spec), format[i], wide);
    }
    return out;
  }
  int count() const { return count_; }

 private:
  // The conversion with widths and precisions of up to kMostText: what is longer is cut there
  // anyway (Print), after minutes.
  static std::string Bounded(const std::string& spec) {
    std::string bounded, number;
    const auto flush = [&] {
      bounded += number.size() > 5 || (!number.empty() && std::stoul(number) > kMostText)
                     ? std::to_string(kMostText)
                     : number;
      number.clear();
    };
    for (const char c : spec) {
      if ((c >= '1' && c <= '9') || (c == '0' && !number.empty())) {
        number += c;
        continue;
      }
      flush();
      bounded += c;
    }
    flush();
    return bounded;
  }
  uint64_t Next(uint32_t size) {
    at_ = (at_ + size - 1) & ~uint64_t{size - 1};
    const std::byte* const bytes = Access(warp_, Space::kGeneric, lane_, at_, size, false);
    at_ += size;
    uint64_t value = 0;
    if (bytes != nullptr) std::memcpy(&value, bytes, size);
    return value;
  }
  template <typename T>
  static std::string Print(const std::string& spec, T value) {
    const int length = std::snprintf(nullptr, 0, spec.c_str(), value);
    std::string text(static_cast<size_t>(std::clamp(length, 0, static_cast<int>(kMostText))) + 1,
                     '\0');
    std::snprintf(text.data(), text.size(), spec.c_str(), value);
    text.pop_back();
    return text;
  }
  std::string One(const std::string& spec, char kind, bool wide) {
    ++count_;
    switch (kind) {
      case 'd':
      case 'i':
        return Print(spec + "lld", wide ? static_cast<long long>(Next(8))
                                        : static_cast<long long>(static_cast<int32_t>(Next(4))));
      case 'u':
      case 'o':
      case 'x':
      case 'X':
        return Print(spec + "ll" + kind, static_cast<unsigned long long>(Next(wide ? 8 : 4)));
      case 'c':
        return Print(spec + "c", static_cast<int>(Next(4)));
      case 'p':
        return Print(spec + "p", reinterpret_cast<void*>(Next(8)));  // NOLINT: only printed
      case 's': {
        const std::string text = Text(warp_, lane_, Next(8));
        return Print(spec + "s", text.c_str());
      }
      case 'a':
      case 'A':
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G': {
        double value;
        const uint64_t bits = Next(8);
        std::memcpy(&value, &bits, sizeof value);
        return Print(spec + kind, value);
      }
      default:
        return spec + kind;
    }
  }

  Warp& warp_;
  uint32_t lane_;
  uint64_t at_;
  int count_ = 0;
};

template <typename F>
void ForLanes(Warp& warp, F f) {
  StandAtCall(warp);
  for (uint32_t mask = warp.exec; mask != 0 && !warp.faulted; mask &= mask - 1) {
    f(static_cast<uint32_t>(std::countr_zero(mask)));
  }
  if (!warp.faulted) Return(warp);
}

void Vprintf(Warp& warp, const Op&) {
  ForLanes(warp, [&](uint32_t lane) {
    const std::string format = Text(warp, lane, Argument(warp, lane, 0));
    Formatter formatter(warp, lane, Argument(warp, lane, 2));
    warp.launch->printed->Add(formatter.Format(format));
    warp.Register(kFirstArgument, lane) = static_cast<uint32_t>(formatter.count());
  });
}
void Malloc(Warp& warp, const Op&) {
  ForLanes(warp, [&](uint32_t lane) {
    Heap* const heap = warp.launch->heap;
    const uint64_t address = heap != nullptr ? heap->Allocate(Argument(warp, lane, 0)) : 0;
    warp.Register(kFirstArgument, lane) = static_cast<uint32_t>(address);
    warp.Register(kFirstArgument + 1, lane) = static_cast<uint32_t>(address >> 32);
  });
}
void Free(Warp& warp, const Op&) {
  ForLanes(warp, [&](uint32_t lane) {
    const uint64_t address = Argument(warp, lane, 0);
    Heap* const heap = warp.launch->heap;
    if (address != 0 && (heap == nullptr || !heap->Free(address))) {
      warp.Raise(Fault::Kind::kIllegalAddress, lane, address,
                 fmt::format("free of {:#x}, which malloc did not give", address));
    }
  });
}
// __assertfail(message, file, line, function, character size)
void AssertFail(Warp& warp, const Op&) {
  StandAtCall(warp);
  const uint32_t lane = warp.FirstLane();
  const std::string message = Text(warp, lane, Argument(warp, lane, 0));
  const std::string file = Text(warp, lane, Argument(warp, lane, 2));
  const uint32_t line = warp.Register(kFirstArgument + 4, lane);
  const std::string function = Text(warp, lane, Argument(warp, lane, 6));
  warp.Raise(Fault::Kind::kAssert, lane, 0,
             fmt::format("{}:{}: {}: assertion `{}` failed", file, line, function, message));
}
void Missing(Warp& warp, const Op& op) {
  const auto names = warp.launch->image->native_names();
  const auto number = static_cast<size_t>(warp.at) + names.size() - warp.code_size;
  (void)op;
  StandAtCall(warp);
  warp.Raise(Fault::Kind::kUnsupported, warp.FirstLane(), 0,
             fmt::format("a call of {}, which the software device does not have",
                         number < names.size() ? names[number] : std::string("a function")));
}

}  // namespace

Op BindNative(const std::string& name) {
  Op op;
  op.stall = 15;
  op.run = name == "vprintf"        ? Vprintf
           : name == "malloc"       ? Malloc
           : name == "free"         ? Free
           : name == "__assertfail" ? AssertFail
                                    : Missing;
  return op;
}

}  // namespace iket::sim
