#include "cli/browser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

namespace iket::cli {
namespace {

using testing::ElementsAre;
using testing::Optional;

class Browser : public testing::Test {
 protected:
  Browser() { setenv("DISPLAY", ":7", 1); }
  ~Browser() override {
    for (const auto& [name, value] : before_) {
      if (value) {
        setenv(name, value->c_str(), 1);
      } else {
        unsetenv(name);
      }
    }
  }

 private:
  static std::map<const char*, std::optional<std::string>> Now() {
    std::map<const char*, std::optional<std::string>> now;
    for (const char* name : {"DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "PATH"}) {
      const char* value = std::getenv(name);
      now[name] = value != nullptr ? std::optional<std::string>(value) : std::nullopt;
    }
    return now;
  }
  const std::map<const char*, std::optional<std::string>> before_ = Now();
};

TEST_F(Browser, OfTheVariable) {
  setenv("BROWSER", "no-such-program-1:sh -c %s=%s:cat", 1);
  EXPECT_THAT(BrowserCommand("http://a"), Optional(ElementsAre("sh", "-c", "http://a=http://a")));
  setenv("BROWSER", "/no/such/program:/bin/sh -x", 1);
  EXPECT_THAT(BrowserCommand("http://%s"), Optional(ElementsAre("/bin/sh", "-x", "http://%s")));
}

TEST_F(Browser, NoneWithoutADisplay) {
  setenv("BROWSER", "sh", 1);
  EXPECT_TRUE(BrowserCommand("x"));
  unsetenv("DISPLAY");
  unsetenv("WAYLAND_DISPLAY");
  EXPECT_FALSE(BrowserCommand("x"));
  setenv("WAYLAND_DISPLAY", "wayland-0", 1);
  EXPECT_TRUE(BrowserCommand("x"));
}

TEST_F(Browser, NoneThatIsNotThere) {
  setenv("BROWSER", "::no-such-program-1", 1);
  setenv("PATH", "/no/such/folder", 1);
  EXPECT_FALSE(BrowserCommand("x"));
  EXPECT_FALSE(Start({"no-such-program-1", "x"}));
}

}  // namespace
}  // namespace iket::cli
