// response.h: the head of an answer of HTTP, with what keeps its contents where they belong.
//
// Every answer forbids caching, guessing of types, being framed or read by other sites, and telling
// others the address, which has a secret in it; and closes the connection.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "serve/request.h"

namespace iket::serve {

struct Answer {
  Status status = Status::kOk;
  std::string_view type = "text/plain; charset=utf-8";
  std::string_view policy = "default-src 'none'";  // Content-Security-Policy
  std::string_view file_name = {};                 // how it is called if it is kept; "" not said
  std::string_view location = {};                  // of kSeeOther
  uint64_t size = 0;                               // bytes that follow
};

// `policy` and `location` must be printable ASCII.
std::string HeadOf(const Answer& answer);

// What an answer that is no file says, for a person.
std::string_view TextOf(Status status);

}  // namespace iket::serve
