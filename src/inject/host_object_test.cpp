#include "inject/host_object.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>

namespace iket::inject {
namespace {

std::string Word(uint32_t value) { return {reinterpret_cast<const char*>(&value), sizeof value}; }

std::string Note(const std::string& name, uint32_t type, const std::string& contents, size_t step) {
  const auto pad = [step](std::string& text) {
    text.resize((text.size() + step - 1) / step * step);
  };
  std::string note = Word(static_cast<uint32_t>(name.size())) +
                     Word(static_cast<uint32_t>(contents.size())) + Word(type) + name;
  pad(note);
  note += contents;
  pad(note);
  return note;
}

const std::string kOurs("iket\0", 5);
const std::string kGnu("GNU\0", 4);

bool Has(const std::string& notes, uint64_t align) {
  return HasNote(UntrustedBytes(notes.data(), notes.size()), align);
}

TEST(HasNote, FindsOursAmongOthersAtBothAlignments) {
  for (const size_t align : {4, 8}) {
    const std::string others = Note(kGnu, 1, "odd", align) + Note(kGnu, 5, "", align);
    const std::string ours = Note(kOurs, 1, Word(1), align);
    EXPECT_FALSE(Has(others, align));
    EXPECT_TRUE(Has(ours, align));
    EXPECT_TRUE(Has(others + ours, align));
    EXPECT_TRUE(Has(ours + others, align));
  }
  EXPECT_TRUE(Has(Note(kOurs, 1, Word(1), 4), 1)) << "1 and 0 mean 4";
}

TEST(HasNote, ToldApartByNameAndType) {
  EXPECT_FALSE(Has(Note(kOurs, 2, Word(1), 4), 4));
  EXPECT_FALSE(Has(Note("iket", 1, Word(1), 4), 4));
  EXPECT_FALSE(Has(Note(std::string("ikes\0", 5), 1, Word(1), 4), 4));
  EXPECT_FALSE(Has("", 4));
}

TEST(HasNote, EndsAtDamage) {
  const std::string ours = Note(kOurs, 1, Word(1), 4);
  for (size_t size = 0; size < 17; ++size) EXPECT_FALSE(Has(ours.substr(0, size), 4)) << size;
  // Sizes that would wrap around, and a note that says it is longer than there is.
  EXPECT_FALSE(Has(Word(~0u) + Word(~0u) + Word(1) + ours, 4));
  EXPECT_FALSE(Has(Word(4) + Word(~0u) + Word(1) + kGnu + ours, 4));
}

// The test program has marks, so to say.
asm(".pushsection .note.iket,\"a\",@note\n\t"
    ".balign 4\n\t.long 5, 4, 1\n\t.asciz \"iket\"\n\t.balign 4\n\t.long 1\n\t.popsection");
const char kHere[] = "in this program";

TEST(HostObject, IsThatOfTheAddress) {
  const std::string on_heap = "somewhere that is in no object";
  // Twice: the second answer may be remembered.
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(HostObjectAt(kHere), HostObject::kMarked);
    EXPECT_EQ(HostObjectAt(on_heap.data()), HostObject::kNone);
    EXPECT_EQ(HostObjectAt(reinterpret_cast<const void*>(&std::strtoul)), HostObject::kSmall);
    EXPECT_EQ(HostObjectAt(nullptr), HostObject::kNone);
  }
}

}  // namespace
}  // namespace iket::inject
