// request.h: what a request of HTTP asks for, from whoever may have sent it.
//
// Only what a browser needs to fetch a file: GET and HEAD, without a body. Everything else is
// refused, and so is a Host that is not this machine's own name for itself: a page of another site,
// whose name was made to lead here (DNS rebinding), gets nothing. Cost: one pass over the head.
#pragma once

#include <string_view>
#include <tl/expected.hpp>

namespace iket::serve {

enum class Status : int {
  kOk = 200,
  kSeeOther = 303,
  kBadRequest = 400,
  kNotFound = 404,
  kMethodNotAllowed = 405,
  kTimeout = 408,
  kMisdirected = 421,
  kHeadTooLarge = 431,
};

struct Request {
  bool head_only = false;      // HEAD
  std::string_view path = {};  // with its slash; as it came, %-codes and query too
};

// What a head ends with, and how long one may be.
inline constexpr std::string_view kEndOfHead = "\r\n\r\n";
inline constexpr size_t kMostHeadBytes = 8192;

// `untrusted` ends with kEndOfHead. Error: how to answer.
tl::expected<Request, Status> ParseRequest(std::string_view untrusted);

}  // namespace iket::serve
