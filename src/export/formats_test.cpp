#include "export/formats.h"

#include <gtest/gtest.h>

namespace iket::exporter {
namespace {

TEST(FormatOfName, IsWhatTheEndingSays) {
  for (const std::string& format : FormatNames()) EXPECT_EQ(FormatOfName("a." + format), format);
  EXPECT_EQ(FormatOfName("a.json"), "trace.json");
  EXPECT_EQ(FormatOfName("a.json.gz"), "trace.json.gz");
  EXPECT_EQ(FormatOfName("a.perfetto-trace.gz"), "pftrace.gz");
  for (const char* name : {"", "-", "a", "a.iketcap", "a.pftrace.old", "pftrace", "json"}) {
    EXPECT_EQ(FormatOfName(name), std::nullopt) << name;
  }
}

TEST(HasRangeCycles, PerfettoAlone) {
  for (const std::string& format : FormatNames()) {
    EXPECT_EQ(HasRangeCycles(format), format.starts_with("pftrace")) << format;
  }
}

}  // namespace
}  // namespace iket::exporter
