#include "export/values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <limits>

namespace iket::exporter {
namespace {

using testing::ElementsAre;
using trace::PayloadType;

trace::Model Named(std::vector<std::string> names) {
  trace::Model model;
  for (std::string& name : names) model.strings.push_back(std::move(name));
  trace::Declaration& declaration = model.declarations.emplace_back();
  declaration.payload = PayloadType::kU32;
  declaration.payload_name = names.empty() ? 0 : 1;
  for (uint32_t i = 2; i <= names.size(); ++i) {
    declaration.more.push_back({.name = i, .type = PayloadType::kU32});
  }
  return model;
}

TEST(ValueNames, DifferFromEachOtherAndFromWhatIsTaken) {
  const std::string_view taken[] = {"cycles"};
  const auto names = [&](std::vector<std::string> all) {
    const trace::Model model = Named(std::move(all));
    return ValueNames(model, model.declarations.front(), taken);
  };
  EXPECT_THAT(names({}), ElementsAre(""));
  EXPECT_THAT(names({"m", "n"}), ElementsAre("m", "n"));
  EXPECT_THAT(names({"m", "m", "cycles", ""}), ElementsAre("m", "2: m", "3: cycles", "4: "));
  EXPECT_THAT(names({"end_m"}), ElementsAre("1: end_m"));
}

std::string Json(PayloadType type, uint64_t bits) {
  std::string text;
  AppendJsonNumber(text, type, bits);
  return text;
}

TEST(AppendNumber, ReadsBackToTheSameValue) {
  EXPECT_EQ(Json(PayloadType::kU32, 0xffffffff), "4294967295");
  EXPECT_EQ(Json(PayloadType::kS32, 0xffffffff), "-1");
  EXPECT_EQ(Json(PayloadType::kU64, ~uint64_t{0}), "18446744073709551615");
  EXPECT_EQ(Json(PayloadType::kS64, uint64_t{1} << 63), "-9223372036854775808");
  EXPECT_EQ(Json(PayloadType::kF32, std::bit_cast<uint32_t>(0.1f)), "0.1");
  EXPECT_EQ(Json(PayloadType::kF64, std::bit_cast<uint64_t>(0.1)), "0.1");
  const float nan = -std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(Json(PayloadType::kF32, std::bit_cast<uint32_t>(nan)), "\"nan\"");
  const double infinity = -std::numeric_limits<double>::infinity();
  EXPECT_EQ(Json(PayloadType::kF64, std::bit_cast<uint64_t>(infinity)), "\"-inf\"");
}

}  // namespace
}  // namespace iket::exporter
