// base64.h: bytes as base64 (RFC 4648, padded), about 1.5 GB/s.
#pragma once

#include <string>
#include <string_view>

namespace iket::exporter {

// Appends `bytes` to `out`.
void AppendBase64(std::string_view bytes, std::string& out);

}  // namespace iket::exporter
