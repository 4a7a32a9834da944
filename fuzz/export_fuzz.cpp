// The strict check of exported files over any bytes: Perfetto traces, JSON, gzip. What must hold:
// each fault lies inside of what was read, and gzip around the bytes changes nothing.
//
// The mutator changes a Perfetto trace inside of one of its messages, at any depth, and makes the
// lengths around it right again.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "export/check.h"
#include "export/gzip.h"
#include "export/proto.h"
#include "export/proto_reader.h"
#include "mutate.h"

namespace {

using iket::Result;
using iket::UntrustedBytes;
using iket::exporter::CheckedExport;
using iket::exporter::CheckExport;
namespace exporter = iket::exporter;
namespace fuzz = iket::fuzz;

void Require(bool holds) {
  if (!holds) std::abort();
}

std::string Compressed(std::string_view bytes) {
  std::string file;
  const exporter::Sink sink = [&](std::string_view block) {
    file += block;
    return Result<void>();
  };
  exporter::GzipStream gzip(sink);
  // Of two members, so that something lies across their border.
  const size_t half = bytes.size() / 2;
  Require(gzip.Write(bytes.substr(0, half)).has_value() && gzip.Finish().has_value());
  exporter::GzipStream rest(sink);
  Require(rest.Write(bytes.substr(half)).has_value() && rest.Finish().has_value());
  return file;
}

bool Same(const CheckedExport& a, const CheckedExport& b) {
  return a.kind == b.kind && a.counts == b.counts && a.faults.count() == b.faults.count();
}

std::vector<std::byte> ChangedMessage(UntrustedBytes message, std::minstd_rand& random, int depth) {
  std::vector<exporter::ProtoField> fields;
  exporter::ProtoReader reader(message);
  while (const auto field = reader.Next()) {
    if (field->is_bytes) fields.push_back(*field);
  }
  if (fields.empty() || (depth > 0 && random() % 3 == 0)) return fuzz::Changed(message.span(), 32);
  const exporter::ProtoField& field = fields[random() % fields.size()];
  const auto* const begin = message.data();
  const std::byte* const end = field.bytes.data() + field.bytes.size();
  const auto changed = ChangedMessage(field.bytes, random, depth + 1);
  exporter::ProtoWriter head;
  head.Text(field.number, {reinterpret_cast<const char*>(changed.data()), changed.size()});
  const auto whole = std::as_bytes(std::span(head.bytes()));
  std::vector<std::byte> result(begin, begin + field.offset);
  result.insert(result.end(), whole.begin(), whole.end());
  result.insert(result.end(), end, begin + message.size());
  return result;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  (void)exporter::LooksLikeExport(bytes);
  const auto checked = CheckExport(bytes, "fuzz");
  if (!checked) return 0;
  Require(checked->faults.first().size() <= checked->faults.count());
  if (checked->compressed) return 0;
  for (const auto& fault : checked->faults.first()) Require(fault.offset <= size);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string file = Compressed(text);
  const auto again = CheckExport(std::as_bytes(std::span(file)), "fuzz");
  // Where half of it does not look like what the whole is, gzip may have hidden it.
  if (again) Require(again->kind != checked->kind || Same(*checked, *again));
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  if (size == 0 || data[0] != 0x0a || seed % 8 == 0) return LLVMFuzzerMutate(data, size, max_size);
  std::minstd_rand random(seed);
  return fuzz::Replace(data, size, max_size, ChangedMessage(UntrustedBytes(data, size), random, 0));
}
