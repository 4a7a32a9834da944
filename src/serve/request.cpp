#include "serve/request.h"

#include <algorithm>
#include <cctype>
#include <optional>

namespace iket::serve {
namespace {

// Takes what stands up to `delimiter` off `text`; nothing if there is none.
std::optional<std::string_view> TakeUpTo(std::string_view delimiter, std::string_view& text) {
  const size_t end = text.find(delimiter);
  if (end == text.npos) return std::nullopt;
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(end + delimiter.size());
  return taken;
}

bool IsName(std::string_view text) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::ranges::all_of(text, [&](unsigned char c) {
    return std::isalnum(c) != 0 || kMarks.find(static_cast<char>(c)) != kMarks.npos;
  });
}

bool IsPrintable(std::string_view text) {
  return std::ranges::all_of(text, [](unsigned char c) { return c > 0x20 && c < 0x7f; });
}

bool SameName(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Whatever the port is: `ssh -L` may have given it another one at the other end.
bool IsThisMachine(std::string_view host) {
  const size_t colon = std::min(host.find(':'), host.size());
  const std::string_view name = host.substr(0, colon);
  const std::string_view port = host.substr(std::min(colon + 1, host.size()));
  constexpr size_t kMostDigits = 5;
  return (name == "127.0.0.1" || SameName(name, "localhost")) && port.size() <= kMostDigits &&
         std::ranges::all_of(port, [](unsigned char c) { return std::isdigit(c) != 0; });
}

}  // namespace

tl::expected<Request, Status> ParseRequest(std::string_view untrusted) {
  const auto bad = tl::unexpected(Status::kBadRequest);
  std::string_view rest = untrusted;
  auto line = TakeUpTo("\r\n", rest);
  if (!line) return bad;
  const auto method = TakeUpTo(" ", *line);
  const auto path = method ? TakeUpTo(" ", *line) : std::nullopt;
  if (!path || !IsName(*method) || !path->starts_with('/') || !IsPrintable(*path) ||
      (*line != "HTTP/1.1" && *line != "HTTP/1.0")) {
    return bad;
  }
  std::optional<std::string_view> host;
  bool has_body = false;
  for (;;) {
    auto field = TakeUpTo("\r\n", rest);
    if (!field) return bad;
    if (field->empty()) break;
    const auto name = TakeUpTo(":", *field);
    if (!name || !IsName(*name)) return bad;
    const std::string_view value = Trimmed(*field);
    if (std::ranges::any_of(value, [](unsigned char c) { return c < 0x20 && c != '\t'; }))
      return bad;
    if (SameName(*name, "host")) {
      if (host) return bad;
      host = value;
    }
    has_body |= SameName(*name, "transfer-encoding");
    has_body |= SameName(*name, "content-length") && value != "0";
  }
  if (!rest.empty() || !host) return bad;
  if (!IsThisMachine(*host)) return tl::unexpected(Status::kMisdirected);
  if (*method != "GET" && *method != "HEAD") return tl::unexpected(Status::kMethodNotAllowed);
  if (has_body) return bad;
  return Request{.head_only = *method == "HEAD", .path = *path};
}

}  // namespace iket::serve
