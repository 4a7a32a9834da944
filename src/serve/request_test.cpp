#include "serve/request.h"

#include <gtest/gtest.h>

#include <string>

namespace iket::serve {
namespace {

std::string Head(const std::string& line, const std::string& fields) {
  return line + "\r\n" + fields + "\r\n";
}

const std::string kHost = "Host: 127.0.0.1:80\r\n";

Status StatusOf(const std::string& head) {
  const auto request = ParseRequest(head);
  return request ? Status::kOk : request.error();
}

TEST(Request, WhatABrowserAsks) {
  const std::string head =
      Head("GET /abc/x?y=%20 HTTP/1.1", kHost + "User-Agent: a (b; c)\r\nAccept:*/*\r\nEmpty:\r\n");
  const auto request = ParseRequest(head);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->path, "/abc/x?y=%20");
  EXPECT_FALSE(request->head_only);
  EXPECT_TRUE(ParseRequest(Head("HEAD / HTTP/1.0", kHost))->head_only);
}

TEST(Request, HostsOfThisMachineAlone) {
  const auto with = [](const std::string& host) {
    return StatusOf(Head("GET / HTTP/1.1", "host: " + host + "\r\n"));
  };
  for (const char* host :
       {"127.0.0.1", "127.0.0.1:1", "localhost:65535", "LocalHost", "localhost:"}) {
    EXPECT_EQ(with(host), Status::kOk) << host;
  }
  for (const char* host : {"", "evil.example", "evil.example:80", "127.0.0.1.evil.example",
                           "localhost.evil.example:80", "127.0.0.2", "localhost:80:80",
                           "localhost:8o", "user@localhost", "localhost:123456", "[::1]"}) {
    EXPECT_EQ(with(host), Status::kMisdirected) << host;
  }
  EXPECT_EQ(StatusOf(Head("GET / HTTP/1.1", "")), Status::kBadRequest);
  EXPECT_EQ(StatusOf(Head("GET / HTTP/1.1", kHost + kHost)), Status::kBadRequest);
}

TEST(Request, NothingIsSentHere) {
  EXPECT_EQ(StatusOf(Head("POST / HTTP/1.1", kHost)), Status::kMethodNotAllowed);
  EXPECT_EQ(StatusOf(Head("get / HTTP/1.1", kHost)), Status::kMethodNotAllowed);
  EXPECT_EQ(StatusOf(Head("GET / HTTP/1.1", kHost + "Content-Length: 5\r\n")), Status::kBadRequest);
  EXPECT_EQ(StatusOf(Head("GET / HTTP/1.1", kHost + "Content-Length: 0\r\n")), Status::kOk);
  EXPECT_EQ(StatusOf(Head("GET / HTTP/1.1", kHost + "Transfer-Encoding: chunked\r\n")),
            Status::kBadRequest);
}

TEST(Request, WhatIsNone) {
  for (const char* line : {"", "GET", "GET /", "GET  / HTTP/1.1", "GET / HTTP/2", "GET / HTTP/1.1 ",
                           "GET x HTTP/1.1", "GET http://127.0.0.1/ HTTP/1.1", "G(T / HTTP/1.1",
                           "GET /\x01 HTTP/1.1", " GET / HTTP/1.1", "GET /\xff HTTP/1.1"}) {
    EXPECT_EQ(StatusOf(Head(line, kHost)), Status::kBadRequest) << line;
  }
  for (const char* field : {"no colon", ": no name", "a b: c", " folded: x", "a : b", "a: b\rc",
                            "a: b\nc", "a: \x01"}) {
    EXPECT_EQ(StatusOf(Head("GET / HTTP/1.1", kHost + field + "\r\n")), Status::kBadRequest)
        << field;
  }
  EXPECT_EQ(StatusOf(Head("GET / HTTP/1.1", kHost) + "x"), Status::kBadRequest);
  // Cut anywhere.
  const std::string head = Head("GET / HTTP/1.1", kHost);
  for (size_t size = 0; size < head.size(); ++size) {
    EXPECT_EQ(StatusOf(head.substr(0, size)), Status::kBadRequest) << size;
  }
}

}  // namespace
}  // namespace iket::serve
