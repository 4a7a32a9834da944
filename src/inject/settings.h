// settings.h: what this library is told: by environment variables, as `iket profile` sets them, or
// by a program that opened it itself (iket/embed.h), which has the last word.
#pragma once

#include <string>

namespace iket::inject {

// The folder that goes with the process, as a value of session::kEnvOutput.
inline constexpr char kTemporaryFolder[] = "?";

// The value of a variable (session/message.h names them); empty if there is none.
std::string Setting(const char* variable);

// From now on it is this, whatever the environment says. What was read before stays as it was, so
// call it before the first image.
void SetSetting(const char* variable, std::string value);

}  // namespace iket::inject
