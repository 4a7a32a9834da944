// SPDX-License-Identifier: Apache-2.0
#include <iket/session.h>

#include <string>
#include <type_traits>

namespace session = iket::session;

static_assert(!std::is_copy_constructible_v<session::window>);
static_assert(noexcept(session::start()) && noexcept(session::stop()) &&
              noexcept(session::mark("")) && noexcept(session::flush()) &&
              noexcept(session::attached()));

int main() {
  for (int i = 0; i < 2; ++i) {
    const session::window window;
    session::mark("literal");
    session::mark(std::string("string"));
    if (session::attached() || session::flush() || !session::snapshot().empty()) return 1;
  }
  return iket_session_attached();
}
