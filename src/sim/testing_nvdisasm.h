// testing_nvdisasm.h: what nvdisasm says of instruction words, many at once.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "sass/instruction.h"

namespace iket::sim::testing {

// The text of each word, without its address and with targets of branches as distances; empty for
// one that nvdisasm takes for no instruction, or for one with a field that has no such value.
//
// It prints nothing at all if one word is wrong, but names all that are: so it runs twice.
inline std::vector<std::string> Disassembled(const std::vector<sass::Instruction>& words) {
  const std::string path = ::testing::TempDir() + "words.bin";
  std::vector<size_t> left;
  for (size_t i = 0; i < words.size(); ++i) left.push_back(i);
  std::vector<std::string> texts(words.size());
  for (int pass = 0; pass < 4; ++pass) {
    std::ofstream file(path, std::ios::binary);
    for (const size_t i : left) file.write(reinterpret_cast<const char*>(&words[i]), 16);
    file.close();
    FILE* const pipe = popen((IKET_NVDISASM " -b SM90 -hex " + path + " 2>&1").c_str(), "r");
    std::vector<bool> wrong(left.size());
    bool any_wrong = false;
    char line[4096];
    while (std::fgets(line, sizeof line, pipe) != nullptr) {
      const std::string row(line);
      if (const size_t at = row.find("at address 0x"); at != std::string::npos) {
        wrong[std::strtoull(&row[at + 13], nullptr, 16) / 16] = any_wrong = true;
        continue;
      }
      // "    /*0010*/    @P0 EXIT ;    /* 0x... */"
      const size_t open = row.find("/*"), close = row.find("*/");
      const size_t end = row.rfind("/* 0x");
      if (open == std::string::npos || close == std::string::npos || end <= close) continue;
      const uint64_t address = std::strtoull(&row[open + 2], nullptr, 16);
      std::string text = row.substr(close + 2, end - close - 2);
      while (!text.empty() && (text.back() == ' ' || text.back() == ';')) text.pop_back();
      text.erase(0, text.find_first_not_of(' '));
      const sass::Instruction& word = words[left[address / 16]];
      const uint32_t opcode = word.opcode();
      const size_t target = text.rfind("0x");
      const bool jumps = opcode == 0x344 || opcode == 0x348 ||
                         (opcode >= 0x944 && opcode <= 0x950 && opcode != 0x949);
      if (jumps && target != std::string::npos && text.find(".ABS") == std::string::npos) {
        const bool negative = target > 0 && text[target - 1] == '-';
        const auto value = static_cast<int64_t>(std::strtoull(&text[target], nullptr, 16));
        text = text.substr(0, target - (negative ? 1 : 0)) + "." +
               std::to_string((negative ? -value : value) - static_cast<int64_t>(address));
      }
      const bool valid =
          text.find("INVALID") == std::string::npos && text.find("???") == std::string::npos;
      if (valid) texts[left[address / 16]] = text;
    }
    pclose(pipe);
    if (!any_wrong) return texts;
    std::vector<size_t> kept;
    for (size_t i = 0; i < left.size(); ++i) {
      if (!wrong[i]) kept.push_back(left[i]);
    }
    left = std::move(kept);
  }
  ADD_FAILURE() << "nvdisasm finds wrong words again and again";
  return texts;
}

}  // namespace iket::sim::testing
