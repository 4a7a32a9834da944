#include "cli/terminal.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/utf8.h"

namespace iket::cli {
namespace {

constexpr auto kPatience = std::chrono::milliseconds(300);
constexpr auto kPeriod = std::chrono::milliseconds(100);
constexpr int kBarWidth = 30;

int g_output_errno = 0;
const char* g_program = "iket";

}  // namespace

void Print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() && g_output_errno == 0) {
    g_output_errno = errno;
  }
}

Result<void> FlushOut() {
  if (std::fflush(stdout) != 0 && g_output_errno == 0) g_output_errno = errno;
  if (g_output_errno != 0) {
    return Fail(ErrorKind::kSystem, "standard output: cannot write: {}",
                std::strerror(g_output_errno));
  }
  return {};
}

std::string Printable(std::string_view untrusted) {
  std::string text;
  text.reserve(untrusted.size());
  while (!untrusted.empty()) {
    const auto first = static_cast<unsigned char>(untrusted[0]);
    const size_t length = Utf8Length(untrusted);
    // U+0080 to U+009F are control characters, too: terminals take U+009B for ESC [.
    const bool control = first < 0x20 || first == 0x7f ||
                         (first == 0xc2 && length == 2 && (untrusted[1] & 0x20) == 0);
    const auto character = untrusted.substr(0, std::max<size_t>(length, 1));
    text += length == 0 || control ? "?" : character;
    untrusted.remove_prefix(character.size());
  }
  return text;
}

void NameProgram(const char* name) { g_program = name; }

void PrintError(std::string_view message) {
  const std::string line = fmt::format("{}: {}\n", g_program, Printable(message));
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void PrintWarning(std::string_view message) { PrintError(fmt::format("warning: {}", message)); }

Progress::Progress(std::string label, std::string what, uint64_t amount)
    : label_(std::move(label)),
      what_(std::move(what)),
      amount_(amount),
      terminal_(isatty(STDERR_FILENO) == 1),
      begin_(std::chrono::steady_clock::now()),
      next_(begin_ + kPatience) {}

Progress::~Progress() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
}

std::string Progress::Pace(double share, double seconds) const {
  // Before that the beginning decides it, which may be unlike the rest.
  constexpr double kEnoughShare = 0.02;
  if (share < kEnoughShare || seconds <= 0) return {};
  std::string pace;
  if (amount_ != 0) {
    pace = fmt::format(" {:.3g} M {}/s,", share * static_cast<double>(amount_) / seconds * 1e-6,
                       what_);
  }
  const auto left = static_cast<uint64_t>(std::llround(seconds / share * (1 - share)));
  return pace + fmt::format(" {}:{:02} left", left / 60, left % 60);
}

void Progress::Update(uint64_t done, uint64_t total) {
  if (!terminal_ || total == 0) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + kPeriod;
  drawn_ = true;
  const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const int filled = static_cast<int>(share * kBarWidth);
  const std::string bar(static_cast<size_t>(filled), '#');
  const std::string pace = Pace(share, std::chrono::duration<double>(now - begin_).count());
  std::fprintf(stderr, "\r%s [%-*s] %3.0f %%%s\x1b[K", label_.c_str(), kBarWidth, bar.c_str(),
               share * 100, pace.c_str());
  std::fflush(stderr);
}

}  // namespace iket::cli
