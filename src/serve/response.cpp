#include "serve/response.h"

#include <fmt/format.h>

#include <cctype>

namespace iket::serve {
namespace {

std::string_view Reason(Status status) {
  switch (status) {
    case Status::kOk:
      return "OK";
    case Status::kSeeOther:
      return "See Other";
    case Status::kBadRequest:
      return "Bad Request";
    case Status::kNotFound:
      return "Not Found";
    case Status::kMethodNotAllowed:
      return "Method Not Allowed";
    case Status::kTimeout:
      return "Request Timeout";
    case Status::kMisdirected:
      return "Misdirected Request";
    case Status::kHeadTooLarge:
      return "Request Header Fields Too Large";
  }
  return "";
}

// As RFC 8187 has it: no byte of a name can end the field.
std::string PercentEncoded(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = byte < 0x80 && (std::isalnum(byte) != 0 || c == '.' || c == '-' || c == '_');
    if (plain) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", byte);
    }
  }
  return encoded;
}

}  // namespace

std::string HeadOf(const Answer& answer) {
  std::string head = fmt::format(
      "HTTP/1.1 {} {}\r\n"
      "Content-Type: {}\r\n"
      "Content-Length: {}\r\n"
      "Content-Security-Policy: {}; frame-ancestors 'none'\r\n"
      "X-Content-Type-Options: nosniff\r\n"
      "Referrer-Policy: no-referrer\r\n"
      "Cross-Origin-Resource-Policy: same-origin\r\n"
      "Cache-Control: no-store\r\n"
      "Connection: close\r\n",
      static_cast<int>(answer.status), Reason(answer.status), answer.type, answer.size,
      answer.policy);
  if (!answer.file_name.empty()) {
    head += fmt::format("Content-Disposition: attachment; filename*=UTF-8''{}\r\n",
                        PercentEncoded(answer.file_name));
  }
  if (!answer.location.empty()) head += fmt::format("Location: {}\r\n", answer.location);
  if (answer.status == Status::kMethodNotAllowed) head += "Allow: GET, HEAD\r\n";
  return head + "\r\n";
}

std::string_view TextOf(Status status) {
  switch (status) {
    case Status::kNotFound:
      return "Not found. The address is the whole line that iket view printed.\n";
    case Status::kMisdirected:
      return "Only 127.0.0.1 and localhost are answered.\n";
    case Status::kMethodNotAllowed:
      return "Only GET and HEAD are answered.\n";
    case Status::kHeadTooLarge:
      return "The request is too large.\n";
    case Status::kTimeout:
      return "The request did not come in time.\n";
    case Status::kBadRequest:
      return "This is no request of a browser.\n";
    default:
      return "";
  }
}

}  // namespace iket::serve
