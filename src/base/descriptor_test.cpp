#include "base/descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace iket {
namespace {

class DescriptorTest : public ::testing::Test {
 protected:
  std::string Path(const char* name) const { return ::testing::TempDir() + "iket_" + name; }
  int Open(const char* name) const {
    return open(Path(name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  }
};

TEST_F(DescriptorTest, IsTheFileThatItWasMadeOf) {
  const Descriptor file(Open("a"));
  EXPECT_GT(file.get(), 2);
}

TEST_F(DescriptorTest, KnowsThatItsNumberWentToSomebodyElse) {
  Descriptor file(Open("a"));
  const int number = file.get();
  close(number);
  EXPECT_EQ(file.get(), -1);
  const int other = open(Path("b").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(dup2(other, number), number);
  EXPECT_EQ(file.get(), -1);
  file.Close();
  EXPECT_NE(fcntl(number, F_GETFD), -1) << "closed what is not its own";
  close(number);
  if (other != number) close(other);
}

TEST_F(DescriptorTest, ReopensTheSameFileOnly) {
  Descriptor file(Open("a"));
  close(file.get());
  EXPECT_EQ(file.GetOrReopen(Path("missing").c_str(), O_RDWR), -1);
  Descriptor other(Open("b"));
  EXPECT_EQ(file.GetOrReopen(Path("b").c_str(), O_RDWR), -1);
  EXPECT_GT(file.GetOrReopen(Path("a").c_str(), O_RDWR), 2);
  EXPECT_GT(file.get(), 2);
}

TEST_F(DescriptorTest, KeepsWhatItReopenedUnderTheSameNumber) {
  Descriptor file(Open("a"));
  const int number = file.get();
  close(number);
  EXPECT_EQ(file.GetOrReopen(Path("a").c_str(), O_RDWR), number);
  EXPECT_EQ(file.get(), number);
}

TEST_F(DescriptorTest, StaysAboveTheStandardOnes) {
  const int saved = fcntl(0, F_DUPFD_CLOEXEC, 3);
  close(0);
  const int low = Open("a");
  ASSERT_EQ(low, 0);
  {
    const Descriptor file(low);
    EXPECT_GT(file.get(), 2);
    EXPECT_EQ(fcntl(0, F_GETFD), -1) << "0 is the program's again";
  }
  if (saved >= 0) dup2(saved, 0), close(saved);
}

}  // namespace
}  // namespace iket
