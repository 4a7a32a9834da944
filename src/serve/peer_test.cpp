#include "serve/peer.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace iket::serve {
namespace {

class Peer : public testing::Test {
 protected:
  Peer() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(listening_, any, size), 0);
    EXPECT_EQ(listen(listening_, 1), 0);
    EXPECT_EQ(getsockname(listening_, any, &size), 0);
    address_ = address;
  }
  ~Peer() override { close(listening_); }

  int Connected() const {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address_), sizeof address_), 0);
    return fd;
  }

  const int listening_ = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address_{};
};

TEST_F(Peer, IsWeOurselves) {
  const int there = Connected();
  const int here = accept(listening_, nullptr, nullptr);
  EXPECT_EQ(UserAtOtherEnd(here), getuid());
  EXPECT_EQ(UserAtOtherEnd(there), getuid());
  close(there);
  close(here);
}

TEST_F(Peer, IsNobodyOfASocketThatIsNotConnected) {
  EXPECT_EQ(UserAtOtherEnd(listening_), std::nullopt);
  EXPECT_EQ(UserAtOtherEnd(-1), std::nullopt);
}

}  // namespace
}  // namespace iket::serve
