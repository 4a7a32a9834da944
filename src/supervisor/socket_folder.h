// socket_folder.h: a folder of our own for sockets, which only this user can enter. Removed at the
// end.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace iket::supervisor {

class SocketFolder {
 public:
  SocketFolder() = default;
  SocketFolder(const SocketFolder&) = delete;
  SocketFolder& operator=(const SocketFolder&) = delete;
  ~SocketFolder();

  // In TMPDIR, or in /tmp where that is no place for it: too long for a socket, not writable, or
  // with a character that Nameable() is there to avoid. Error: kSystem.
  Result<void> Create();

  // Where guests connect to, and where people ask (session/control.h).
  std::string guests() const { return path_ + "/s"; }
  std::string control() const;

  // `path` under a name that lists of the loader can hold (LD_PRELOAD, LD_LIBRARY_PATH), which take
  // blanks, colons and semicolons for separators and expand $: itself, or a link `link` in the
  // folder. Error: kSystem.
  Result<std::string> Nameable(const std::string& path, const char* link);

 private:
  std::string path_;
  std::vector<std::string> links_;
};

}  // namespace iket::supervisor
