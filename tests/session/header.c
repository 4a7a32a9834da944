/* SPDX-License-Identifier: Apache-2.0 */
#include <iket/session.h>

int main(void) {
  char path[8] = "path";
  int i;
  for (i = 0; i < 2; ++i) { /* looked up, and known */
    iket_session_start();
    iket_session_mark("mark");
    iket_session_mark(0);
    iket_session_stop();
    if (iket_session_attached() || iket_session_flush()) return 1;
    if (iket_session_snapshot(0, 0) != 0) return 2;
    if (iket_session_snapshot(path, sizeof path) != 0 || path[0] != 0) return 3;
  }
  return 0;
}
