#include "cli/json_file.h"

#include <stdexcept>

#include "base/mapped_file.h"
#include "cli/terminal.h"

namespace iket::cli {
namespace {

using Json = nlohmann::json;

constexpr int kMostDepth = 16;

}  // namespace

Result<std::string> ReadConfiguration(const std::string& path) {
  auto file = MappedFile::Open(path, "configuration");
  if (!file) return tl::unexpected(file.error());
  const auto bytes = file->bytes();
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Result<Json> ParseJsonObject(const std::string& untrusted, const std::string& name) {
  const auto too_deep = [](int depth, Json::parse_event_t, Json&) {
    if (depth > kMostDepth) throw std::length_error("nested too deep");
    return true;
  };
  Json file;
  try {
    file = Json::parse(untrusted, too_deep);
  } catch (const std::exception& error) {
    return Fail(ErrorKind::kBadInput, "{}: not JSON: {}", name, Printable(error.what()));
  }
  if (!file.is_object()) return Fail(ErrorKind::kBadInput, "{}: not a JSON object", name);
  return file;
}

Result<Json> ReadJsonObject(const std::string& path) {
  const auto text = ReadConfiguration(path);
  if (!text) return tl::unexpected(text.error());
  return ParseJsonObject(*text, path);
}

}  // namespace iket::cli
