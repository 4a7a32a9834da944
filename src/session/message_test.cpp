// The message with descriptors over real sockets.
#include "session/message.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <vector>

namespace iket::session {
namespace {

size_t OpenDescriptors() {
  const std::filesystem::directory_iterator first("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(first), end(first)));
}

// A descriptor of a file without a name that holds `text`.
int FileWith(const char* text) {
  std::FILE* file = std::tmpfile();
  const int fd = dup(fileno(file));
  std::fclose(file);
  EXPECT_EQ(write(fd, text, std::strlen(text)), static_cast<ssize_t>(std::strlen(text)));
  return fd;
}
std::string TextOf(int fd) {
  char text[64];
  const ssize_t got = pread(fd, text, sizeof text, 0);
  return got < 0 ? "?" : std::string(text, static_cast<size_t>(got));
}

class MessageTest : public ::testing::Test {
 protected:
  MessageTest() {
    before_ = OpenDescriptors();
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends_), 0);
  }
  // Nobody may keep a descriptor that a test did not close.
  ~MessageTest() override {
    close(ends_[0]);
    if (ends_[1] >= 0) close(ends_[1]);
    EXPECT_EQ(OpenDescriptors(), before_);
  }

  // Sends raw bytes with that many descriptors.
  void SendRaw(const std::vector<char>& bytes, size_t descriptors) {
    iovec part{const_cast<char*>(bytes.data()), bytes.size()};
    std::vector<char> control(CMSG_SPACE(descriptors * sizeof(int)));
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    if (descriptors > 0) {
      header.msg_control = control.data();
      header.msg_controllen = control.size();
      cmsghdr* rights = CMSG_FIRSTHDR(&header);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(descriptors * sizeof(int));
      const std::vector<int> same(descriptors, ends_[0]);
      std::memcpy(CMSG_DATA(rights), same.data(), descriptors * sizeof(int));
    }
    ASSERT_EQ(sendmsg(ends_[0], &header, 0), static_cast<ssize_t>(bytes.size()));
  }
  // The bytes of a right message.
  std::vector<char> RightBytes() {
    EXPECT_TRUE(Send(ends_[0], {.pid = 1, .table = ends_[0], .rings = ends_[0]}));
    std::vector<char> bytes(256);
    const ssize_t got = recv(ends_[1], bytes.data(), bytes.size(), 0);  // drops the descriptors
    EXPECT_GT(got, 0);
    bytes.resize(static_cast<size_t>(got));
    return bytes;
  }

  int ends_[2] = {-1, -1};
  size_t before_ = 0;
};

// The ring memory that comes next.
Result<RingMemory> ReceiveMemory(int socket) {
  auto message = ReceiveUntrusted(socket);
  if (!message) return tl::unexpected(message.error());
  const auto* const memory = std::get_if<RingMemory>(&*message);
  if (memory == nullptr) return Fail(ErrorKind::kNothing, "another message");
  return *memory;
}

TEST_F(MessageTest, ArrivesWithItsDescriptors) {
  RingMemory sent{.pid = 4711, .context = 3, .ring_bytes = 32 << 10, .sm_count = 132};
  for (size_t i = 0; i < 16; ++i) sent.device_uuid[i] = static_cast<uint8_t>(200 + i);
  sent.table = FileWith("table");
  sent.rings = FileWith("rings");
  ASSERT_TRUE(Send(ends_[0], sent));
  close(sent.table);
  close(sent.rings);

  const auto received = ReceiveMemory(ends_[1]);
  ASSERT_TRUE(received) << received.error().message;
  EXPECT_EQ(received->pid, sent.pid);
  EXPECT_EQ(received->context, sent.context);
  EXPECT_EQ(received->ring_bytes, sent.ring_bytes);
  EXPECT_EQ(received->sm_count, sent.sm_count);
  EXPECT_EQ(received->device_uuid, sent.device_uuid);
  EXPECT_EQ(TextOf(received->table), "table");
  EXPECT_EQ(TextOf(received->rings), "rings");
  for (const int fd : {received->table, received->rings}) {
    EXPECT_NE(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0) << "a child would inherit it";
    close(fd);
  }
}

TEST_F(MessageTest, KeepsPacketsApart) {
  for (uint32_t pid = 1; pid <= 3; ++pid) {
    ASSERT_TRUE(Send(ends_[0], {.pid = pid, .table = ends_[0], .rings = ends_[1]}));
  }
  for (uint32_t pid = 1; pid <= 3; ++pid) {
    const auto received = ReceiveMemory(ends_[1]);
    ASSERT_TRUE(received);
    EXPECT_EQ(received->pid, pid);
    close(received->table);
    close(received->rings);
  }
}

TEST_F(MessageTest, AnEndIsSaid) {
  const Farewell farewells[] = {{.pid = 7}, {.pid = 9, .rings_read = true, .launches = 1ull << 40}};
  for (const Farewell& sent : farewells) {
    ASSERT_TRUE(Send(ends_[0], sent));
    const auto received = ReceiveUntrusted(ends_[1]);
    ASSERT_TRUE(received) << received.error().message;
    EXPECT_EQ(std::get<Farewell>(*received), sent);
  }
}

TEST_F(MessageTest, RefusesPacketsThatAreNone) {
  const std::vector<char> right = RightBytes();
  std::vector<char> other_magic = right;
  other_magic[0] ^= 1;
  std::vector<char> longer = right;
  longer.push_back(0);
  const std::vector<char> shorter(right.begin(), right.end() - 1);
  const struct {
    std::vector<char> bytes;
    size_t descriptors;
  } packets[] = {{other_magic, 2}, {shorter, 2}, {right, 0},  {right, 1}, {right, 3},
                 {right, 8},       {{'x'}, 0},   {right, 20}, {longer, 2}};
  for (const auto& packet : packets) {
    SendRaw(packet.bytes, packet.descriptors);
    const auto received = ReceiveUntrusted(ends_[1]);
    ASSERT_FALSE(received) << packet.bytes.size() << " bytes, " << packet.descriptors;
    EXPECT_EQ(received.error().kind, ErrorKind::kBadInput);
  }
}

TEST_F(MessageTest, DropsTheDescriptorsOfAnEmptyPacket) {
  SendRaw({}, 2);
  EXPECT_FALSE(ReceiveUntrusted(ends_[1]));
}

TEST_F(MessageTest, SaysThatTheOtherSideIsGone) {
  close(ends_[1]);
  ends_[1] = -1;
  const auto sent = Send(ends_[0], {.pid = 1, .table = ends_[0], .rings = ends_[0]});
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().kind, ErrorKind::kSystem);
  EXPECT_EQ(ReceiveUntrusted(ends_[0]).error().kind, ErrorKind::kSystem);
}

TEST_F(MessageTest, ConnectsToAListener) {
  const std::string path = ::testing::TempDir() + "iket_message_test.socket";
  unlink(path.c_str());
  EXPECT_FALSE(Connect(path));
  const auto listener = Listen(path);
  ASSERT_TRUE(listener) << listener.error().message;
  const auto guest = Connect(path);
  ASSERT_TRUE(guest) << guest.error().message;
  const int connection = accept(*listener, nullptr, nullptr);
  ASSERT_GE(connection, 0);
  EXPECT_TRUE(Send(*guest, {.pid = 9, .table = *guest, .rings = *guest}));
  const auto received = ReceiveMemory(connection);
  ASSERT_TRUE(received);
  EXPECT_EQ(received->pid, 9u);
  for (const int fd : {*listener, *guest, connection, received->table, received->rings}) close(fd);
  EXPECT_FALSE(Listen(path)) << "the path is taken";
  unlink(path.c_str());
}

TEST_F(MessageTest, RefusesPathsThatNoSocketTakes) {
  const std::string path(200, 'x');
  for (const auto& result : {Connect(path), Listen(path)}) {
    ASSERT_FALSE(result);
    EXPECT_NE(result.error().message.find("too long"), std::string::npos);
  }
}

TEST(SessionPath, NamesFilesByProcess) {
  EXPECT_EQ(SessionPath("out", 0x1a2b, kSuffixCapture), "out/iket_pid_0x1a2b.iketcap");
  EXPECT_EQ(SessionPath("out", 1, kSuffixPart), "out/iket_pid_0x1.iketcap.part");
}

}  // namespace
}  // namespace iket::session
