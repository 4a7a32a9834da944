// gzip.h: a sink that compresses on the way to another sink.
//
// The output is a gzip file of members of up to 4 MiB of input each, so that memory stays small; a
// file of several members is one file to gunzip, to zlib and to Perfetto. Cost: libdeflate's level
// 6, about 100 MB/s of input a core.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "export/sink.h"

struct libdeflate_compressor;

namespace iket::exporter {

class GzipStream {
 public:
  // `out` must outlive it.
  explicit GzipStream(const Sink& out);
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;
  ~GzipStream();

  // Fails when `out` does, or for want of memory.
  Result<void> Write(std::string_view bytes);
  // The last member; a file of no bytes gets one too. Nothing may follow.
  Result<void> Finish();

 private:
  Result<void> WriteMember();

  const Sink& out_;
  libdeflate_compressor* compressor_;
  std::string pending_;
  std::string member_;
  bool any_ = false;
};

}  // namespace iket::exporter
