#include "supervisor/socket_folder.h"

#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "session/control.h"

namespace iket::supervisor {
namespace {

namespace fs = std::filesystem;

bool IsNameable(const std::string& path) { return path.find_first_of(" :;$") == std::string::npos; }

// The folders to try, best first.
std::vector<std::string> Places() {
  constexpr size_t kLongest = sizeof(sockaddr_un::sun_path) - sizeof "/iket-XXXXXX/s";
  std::vector<std::string> places;
  const char* variable = getenv("TMPDIR");
  std::error_code error;
  if (variable != nullptr && *variable != 0) {
    const std::string place = fs::absolute(variable, error);
    if (!error && place.size() <= kLongest && IsNameable(place)) places.push_back(place);
  }
  places.emplace_back("/tmp");
  return places;
}

}  // namespace

Result<void> SocketFolder::Create() {
  int error = 0;
  std::string tried;
  for (const std::string& place : Places()) {
    std::string path = place + "/iket-XXXXXX";
    if (mkdtemp(path.data()) != nullptr) {
      path_ = std::move(path);
      return {};
    }
    error = errno;
    tried = path;
  }
  return Fail(ErrorKind::kSystem, "{}: cannot make a folder for a socket: {}; set TMPDIR", tried,
              std::strerror(error));
}

SocketFolder::~SocketFolder() {
  if (path_.empty()) return;
  unlink(guests().c_str());
  unlink(control().c_str());
  for (const std::string& link : links_) unlink(link.c_str());
  rmdir(path_.c_str());
}

std::string SocketFolder::control() const { return session::ControlPath(guests()); }

Result<std::string> SocketFolder::Nameable(const std::string& path, const char* link) {
  if (IsNameable(path)) return path;
  std::string name = path_ + "/" + link;
  std::error_code error;
  const std::string target = fs::absolute(path, error);
  if (error || symlink(target.c_str(), name.c_str()) != 0) {
    return Fail(ErrorKind::kSystem, "{}: cannot link to {}: {}", name, path,
                error ? error.message() : std::strerror(errno));
  }
  links_.push_back(name);
  return name;
}

}  // namespace iket::supervisor
