// screen.h: a terminal that a program has to itself, until it goes.
//
// The terminal's other screen, without echo and line editing, the cursor hidden. All of it is put
// back in every way of ending: the object goes (also by an exception), or one of the signals comes
// that end a program.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace iket::cli {

// A key as its character, or one of these.
enum Key : int {
  kKeyNone = -1,
  kKeyUp = 0x100,
  kKeyDown,
  kKeyLeft,
  kKeyRight,
  kKeyHome,
  kKeyEnd,
  kKeyPageUp,
  kKeyPageDown,
  kKeyEscape,
  kKeyResized,  // the terminal has another size
  kKeyClosed,   // nobody is there any more, or a signal asks to end
};

class Screen {
 public:
  // Error (kUsage): standard input or output is no terminal.
  static Result<Screen> Open();
  Screen(Screen&& other) noexcept;
  Screen& operator=(Screen&&) = delete;
  ~Screen();

  struct Size {
    size_t columns = 80, rows = 24;
  };
  Size size() const;
  // The whole screen, a line each; text may hold SGR sequences.
  void Draw(const std::vector<std::string>& lines);
  // Waits for a key.
  int Read();
  // The signal that asked to end; nothing if none did.
  std::optional<int> signal() const { return signal_; }

 private:
  Screen() = default;
  int ReadByte(int wait_ms);
  int ReadSequence();
  void Restore();

  bool open_ = false;
  int signals_ = -1;  // a signalfd
  std::optional<int> signal_;
};

}  // namespace iket::cli
