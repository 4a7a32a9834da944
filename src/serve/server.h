// server.h: shows a few files to the browser of whoever started this, and to nobody else.
//
// Listens on 127.0.0.1 alone. All addresses begin with a token of 128 random bits, since other
// users of the machine can connect, too. A browser that is started gets an entry instead (its
// command line is public): good once, and only for a process of the same user. Requests are bounded
// in size and time; where more are open than kMostConnections, the oldest that has not shown the
// token is closed. So whoever stays silent, asks for nonsense or reads slowly holds up nobody else.
//
// One thread, one poll loop, no memory that grows with a file.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <string>
#include <string_view>

#include "base/error.h"
#include "serve/connection.h"

namespace iket::serve {

inline constexpr size_t kMostConnections = 64;

class Server {
 public:
  // `port` 0: any that is free. Errors: kUsage (the port is taken), kSystem.
  static Result<Server> Listen(uint16_t port);

  Server(Server&& other) noexcept;
  Server& operator=(Server&&) = delete;
  ~Server();

  // What stands at the address, and then `name`. What it refers to must outlive the server.
  void Add(Resource resource) { resources_.push_back(std::move(resource)); }

  uint16_t port() const { return port_; }
  // "http://127.0.0.1:40123/0123456789abcdef0123456789abcdef/": a secret.
  std::string Address() const;
  // An address that leads there once, if a process of this user asks for it.
  std::string Entry() const;

  // Answers until a signal ends the process. Error (kSystem): it cannot go on.
  Result<void> Run();

 private:
  Server(int socket, uint16_t port, std::string token, std::string entry);

  Result<void> Accept(Clock::time_point now);
  // The answer to a whole head.
  void Respond(std::string_view untrusted_head, Connection& connection);
  bool MayEnter(const Connection& connection) const;
  void DropOne();

  int socket_ = -1;
  uint16_t port_ = 0;
  std::string token_;
  std::string entry_;  // "" once it was used
  std::deque<Resource> resources_;
  std::list<Connection> connections_;  // by age, the oldest first
};

}  // namespace iket::serve
