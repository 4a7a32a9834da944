#include "export/check.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "export/pftrace_check.h"
#include "export/trace_json_check.h"
#include "export/unpack.h"

namespace iket::exporter {
namespace {

using Block = std::optional<std::span<const std::byte>>;

constexpr auto kPacket = std::byte{0x0a};  // tag of the first packet of a Perfetto trace

bool IsBlank(std::byte byte) {
  return byte == std::byte{' '} || byte == std::byte{'\t'} || byte == std::byte{'\r'} ||
         byte == std::byte{'\n'};
}

// JSON begins with its outermost object. A line feed before it is also the tag of a packet, and the
// brace then its length: what follows decides.
bool LooksLikeJson(std::span<const std::byte> bytes) {
  const auto brace = std::ranges::find_if_not(bytes, IsBlank);
  if (brace == bytes.end() || *brace != std::byte{'{'}) return false;
  const auto then = std::find_if_not(brace + 1, bytes.end(), IsBlank);
  return bytes[0] != kPacket ||
         (then != bytes.end() && (*then == std::byte{'"'} || *then == std::byte{'}'}));
}

}  // namespace

void Faults::Add(uint64_t offset, std::string_view kind, std::string text) {
  if (++count_ <= kMostFaults) first_.push_back({offset, std::string(kind), std::move(text)});
}

bool LooksLikeExport(std::span<const std::byte> untrusted) {
  return IsGzip(untrusted) || LooksLikeJson(untrusted) ||
         (!untrusted.empty() && untrusted[0] == kPacket);
}

Result<CheckedExport> CheckExport(std::span<const std::byte> untrusted, const std::string& name,
                                  const Progress& progress) {
  Unpacker unpacker(untrusted);
  CheckedExport checked;
  checked.compressed = IsGzip(untrusted);
  uint64_t unpacked = 0;
  const auto next = [&]() -> Block {
    if (progress) progress(unpacker.file_offset(), untrusted.size());
    Block block = unpacker.Next();
    if (block) unpacked += block->size();
    return block;
  };

  Block block = next();
  while (block && block->empty()) block = next();
  const bool json = block && LooksLikeJson(*block);
  if (!json && (!block || (*block)[0] != kPacket)) {
    if (!unpacker.damage().empty()) {
      return Fail(ErrorKind::kBadInput, "{}: {} at byte {}", name, unpacker.damage(),
                  unpacker.file_offset());
    }
    return Fail(ErrorKind::kBadInput, "{}: neither a Perfetto trace nor JSON{}", name,
                block ? "" : " (it is empty)");
  }
  if (json) {
    checked.kind = "trace.json";
    checked.counts = CheckTraceJson(
        [&]() -> Block { return block ? std::exchange(block, std::nullopt) : next(); },
        checked.faults);
  } else {
    checked.kind = "pftrace";
    PftraceCheck check(checked.faults);
    for (; block; block = next()) check.Feed(*block);
    check.Finish();
    checked.counts = check.counts();
  }
  if (!unpacker.damage().empty()) {
    checked.faults.Add(
        unpacked, "gzip",
        fmt::format("{} at byte {} of the file", unpacker.damage(), unpacker.file_offset()));
  }
  return checked;
}

}  // namespace iket::exporter
