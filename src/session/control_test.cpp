// Questions and answers over real sockets.
#include "session/control.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "session/message.h"

namespace iket::session {
namespace {

class ControlTest : public ::testing::Test {
 protected:
  ControlTest() { unlink(path_.c_str()); }
  ~ControlTest() override { unlink(path_.c_str()); }

  std::string path_ = ::testing::TempDir() + "iket_control_test.socket";
};

TEST_F(ControlTest, AnswersWhatIsAsked) {
  const auto socket = ControlSocket::Listen(path_);
  ASSERT_TRUE(socket) << socket.error().message;
  std::string asked;
  std::thread server([&] {
    socket->Serve([&](std::string_view request) -> Result<std::string> {
      asked = request;
      return "a.iketcap\nb.iketcap";
    });
    socket->Serve([](std::string_view) -> Result<std::string> {
      return Fail(ErrorKind::kNothing, "there is nothing");
    });
  });
  const auto answer = Ask(path_, "snapshot 4711");
  const auto refused = Ask(path_, "snapshot 1");
  server.join();
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(*answer, "a.iketcap\nb.iketcap");
  EXPECT_EQ(asked, "snapshot 4711");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "there is nothing");
}

TEST_F(ControlTest, AnEmptyAnswerIsAnAnswer) {
  const auto socket = ControlSocket::Listen(path_);
  ASSERT_TRUE(socket);
  std::thread server([&] { socket->Serve([](std::string_view) { return std::string(); }); });
  const auto answer = Ask(path_, "snapshot 0");
  server.join();
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(*answer, "");
}

TEST_F(ControlTest, DoesNotWaitForSomebodyWhoHangsUp) {
  const auto socket = ControlSocket::Listen(path_);
  ASSERT_TRUE(socket);
  {
    const Descriptor gone(*Connect(path_));
  }
  bool called = false;
  socket->Serve([&](std::string_view) -> Result<std::string> {
    called = true;
    return "";
  });
  EXPECT_FALSE(called);
}

TEST_F(ControlTest, SaysThatNobodyListens) {
  const auto answer = Ask(path_, "snapshot 0");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, ErrorKind::kSystem);
}

TEST(ControlPath, IsBesideTheSocketOfTheGuests) {
  EXPECT_EQ(ControlPath("/tmp/iket-abc/s"), "/tmp/iket-abc/c");
}

}  // namespace
}  // namespace iket::session
