// json_file.h: configurations that a person wrote, or another tool.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"

namespace iket::cli {

// All of a file. Errors: kBadInput, kSystem.
Result<std::string> ReadConfiguration(const std::string& path);

// The object that the text is, not nested deeper than any configuration. `name` is for messages.
// Errors: kBadInput.
Result<nlohmann::json> ParseJsonObject(const std::string& untrusted, const std::string& name);
// Both.
Result<nlohmann::json> ReadJsonObject(const std::string& path);

}  // namespace iket::cli
