// beside.h: a file that appears under its name when it is whole.
//
// It is made in a folder of its own beside its place, so that nobody else writes to it and the last
// step is a rename. What is there already is replaced by that step and by nothing before it; what
// is no plain file (a device, a link, a folder) is never replaced. The folder goes at the end, and
// what is left in it.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace iket::inject {

class Beside {
 public:
  explicit Beside(std::string path) : path_(std::move(path)) {}
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;
  ~Beside();

  // Makes the folder. Errors: kUsage (there is something that is no plain file), kSystem.
  Result<void> Ready();
  // The path of a file in it.
  std::string File(const char* name);
  // Puts one of its files at its place. Error: kSystem.
  Result<void> Place(const std::string& file);

 private:
  std::string path_;
  std::string folder_;  // empty: there is none
  std::vector<std::string> files_;
};

}  // namespace iket::inject
