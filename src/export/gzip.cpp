#include "export/gzip.h"

#include <libdeflate.h>

namespace iket::exporter {
namespace {

constexpr size_t kMemberBytes = 4 << 20;
constexpr int kLevel = 6;

}  // namespace

GzipStream::GzipStream(const Sink& out)
    : out_(out), compressor_(libdeflate_alloc_compressor(kLevel)) {}

GzipStream::~GzipStream() { libdeflate_free_compressor(compressor_); }

Result<void> GzipStream::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t take = std::min(bytes.size(), kMemberBytes - pending_.size());
    pending_.append(bytes.substr(0, take));
    bytes.remove_prefix(take);
    if (pending_.size() < kMemberBytes) break;
    if (auto written = WriteMember(); !written) return written;
  }
  return {};
}

Result<void> GzipStream::Finish() {
  if (pending_.empty() && any_) return {};
  return WriteMember();
}

Result<void> GzipStream::WriteMember() {
  if (compressor_ == nullptr) {
    return Fail(ErrorKind::kSystem, "export: no memory for compressing; write without .gz");
  }
  member_.resize(libdeflate_gzip_compress_bound(compressor_, pending_.size()));
  const size_t size = libdeflate_gzip_compress(compressor_, pending_.data(), pending_.size(),
                                               member_.data(), member_.size());
  pending_.clear();
  any_ = true;
  return out_(std::string_view(member_).substr(0, size));
}

}  // namespace iket::exporter
