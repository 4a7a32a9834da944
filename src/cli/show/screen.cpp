#include "cli/show/screen.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include <csignal>
#include <utility>

namespace iket::cli {
namespace {

// How the terminal was, and which signals were held back; one screen at a time.
termios g_before{};
sigset_t g_mask_before{};

void Write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDOUT_FILENO, text.data(), text.size());
    if (written <= 0) return;  // nobody sees it
    text.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace

Result<Screen> Screen::Open() {
  if (isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1 ||
      tcgetattr(STDIN_FILENO, &g_before) != 0) {
    return Fail(ErrorKind::kUsage, "no terminal");
  }
  Screen screen;
  sigset_t held;
  sigemptyset(&held);
  for (const int signal : {SIGWINCH, SIGTERM, SIGHUP, SIGINT, SIGQUIT}) sigaddset(&held, signal);
  sigprocmask(SIG_BLOCK, &held, &g_mask_before);
  screen.signals_ = signalfd(-1, &held, SFD_CLOEXEC | SFD_NONBLOCK);
  termios raw = g_before;
  raw.c_lflag &= ~static_cast<tcflag_t>(ECHO | ICANON | ISIG | IEXTEN);
  raw.c_iflag &= ~static_cast<tcflag_t>(IXON | ICRNL);
  raw.c_oflag &= ~static_cast<tcflag_t>(OPOST);
  tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw);
  screen.open_ = true;
  Write("\x1b[?1049h\x1b[?25l");
  return screen;
}

Screen::Screen(Screen&& other) noexcept
    : open_(std::exchange(other.open_, false)),
      signals_(std::exchange(other.signals_, -1)),
      signal_(other.signal_) {}

Screen::~Screen() { Restore(); }

void Screen::Restore() {
  if (!std::exchange(open_, false)) return;
  Write("\x1b[0m\x1b[?25h\x1b[?1049l");
  tcsetattr(STDIN_FILENO, TCSAFLUSH, &g_before);
  if (signals_ >= 0) close(signals_);
  sigprocmask(SIG_SETMASK, &g_mask_before, nullptr);
}

Screen::Size Screen::size() const {
  winsize window{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0 || window.ws_row == 0) {
    return {};
  }
  return {.columns = window.ws_col, .rows = window.ws_row};
}

void Screen::Draw(const std::vector<std::string>& lines) {
  std::string text = "\x1b[H";
  for (size_t i = 0; i < lines.size(); ++i) {
    text += lines[i] + "\x1b[K" + (i + 1 < lines.size() ? "\r\n" : "");
  }
  Write(text + "\x1b[J");
}

int Screen::ReadByte(int wait_ms) {
  pollfd polled[] = {{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0},
                     {.fd = signals_, .events = POLLIN, .revents = 0}};
  if (poll(polled, 2, wait_ms) <= 0) return kKeyNone;
  if (polled[1].revents != 0) {
    signalfd_siginfo info{};
    if (read(signals_, &info, sizeof info) == sizeof info) {
      if (info.ssi_signo == SIGWINCH) return kKeyResized;
      signal_ = static_cast<int>(info.ssi_signo);
      return kKeyClosed;
    }
  }
  if (polled[0].revents == 0) return kKeyNone;
  unsigned char byte = 0;
  return read(STDIN_FILENO, &byte, 1) == 1 ? int{byte} : int{kKeyClosed};
}

// Behind an escape: a key, or nothing but the escape.
int Screen::ReadSequence() {
  constexpr int kMoment = 50;  // ms: a terminal sends the rest at once
  const int kind = ReadByte(kMoment);
  if (kind != '[' && kind != 'O') return kKeyEscape;
  int number = 0, byte = ReadByte(kMoment);
  for (; byte >= '0' && byte <= '9'; byte = ReadByte(kMoment)) number = number * 10 + byte - '0';
  switch (byte) {
    case 'A':
      return kKeyUp;
    case 'B':
      return kKeyDown;
    case 'C':
      return kKeyRight;
    case 'D':
      return kKeyLeft;
    case 'H':
      return kKeyHome;
    case 'F':
      return kKeyEnd;
    case '~':
      return number == 1 || number == 7   ? kKeyHome
             : number == 4 || number == 8 ? kKeyEnd
             : number == 5                ? kKeyPageUp
             : number == 6                ? kKeyPageDown
                                          : kKeyNone;
    default:
      return kKeyNone;
  }
}

int Screen::Read() {
  for (;;) {
    const int byte = ReadByte(-1);
    if (byte == kKeyNone) continue;
    const int key = byte == 0x1b ? ReadSequence() : byte;
    if (key != kKeyNone) return key;
  }
}

}  // namespace iket::cli
