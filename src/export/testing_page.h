// testing_page.h: a model's page as text, for tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "export/page.h"

namespace iket::exporter::testing_page {

inline std::string Page(const trace::Model& model, const PageOptions& options = {}) {
  std::string text;
  EXPECT_TRUE(WritePage(
      model,
      [&](std::string_view block) {
        text += block;
        return Result<void>();
      },
      options));
  return text;
}

}  // namespace iket::exporter::testing_page
