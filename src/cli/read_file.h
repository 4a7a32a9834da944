// read_file.h: small files that other processes or the build made, as a whole.
#pragma once

#include <fstream>
#include <iterator>
#include <string>

namespace iket::cli {

// "" of one that cannot be read.
inline std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace iket::cli
