// stream_capture: captures of any length for postprocess.py, and decoding alone.
//
//   stream_capture make EVENTS FILE [ROUNDS]   as `iket profile --overflow stream` leaves it, of
//   about
//                                              EVENTS, eight in each of the ROUNDS (50) of a warp
//   stream_capture decode FILE                 reads, decodes and pairs; prints what there is,
//   seconds
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "capture/reader.h"
#include "trace/decode.h"
#include "trace/synthetic_stream.h"

namespace {

using iket::Result;

int Fail(const iket::Error& error) {
  std::fprintf(stderr, "stream_capture: %s\n", error.message.c_str());
  return 1;
}

int Make(const iket::trace::StreamLength& length, const std::string& path) {
  const auto counts = iket::trace::WriteSyntheticStream(length, path);
  if (!counts) return Fail(counts.error());
  std::printf("%llu events, %llu warps, %llu launches\n",
              static_cast<unsigned long long>(counts->events),
              static_cast<unsigned long long>(counts->warps),
              static_cast<unsigned long long>(counts->launches));
  return 0;
}

int Decode(const std::string& path) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const auto reader = iket::capture::Reader::Open(path);
  if (!reader) return Fail(reader.error());
  iket::trace::Decoder decoder(reader->capture());
  reader->ForEachRingBlock([&](const iket::capture::RingBlock& block) {
    decoder.Add(block);
    return true;
  });
  const auto read = Clock::now();
  const auto model = decoder.Finish();
  if (!model) return Fail(model.error());
  const auto done = Clock::now();
  const auto seconds = [](Clock::duration time) {
    return std::chrono::duration<double>(time).count();
  };
  std::printf("%zu events, %zu ranges, %zu warps; read %.4f s, decoded and paired %.4f s\n",
              model->events.size(), model->ranges.size(), model->warps.size(),
              seconds(read - begin), seconds(done - read));
  std::fflush(stdout);
  std::_Exit(0);  // giving memory back is not what is measured
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "make" && (argc == 4 || argc == 5)) {
    iket::trace::StreamLength length{.events = std::strtoull(argv[2], nullptr, 10)};
    if (argc == 5) length.rounds = static_cast<uint32_t>(std::strtoul(argv[4], nullptr, 10));
    return Make(length, argv[3]);
  }
  if (what == "decode" && argc == 3) return Decode(argv[2]);
  std::fprintf(stderr,
               "usage: stream_capture make EVENTS FILE [ROUNDS] | stream_capture decode FILE\n");
  return 2;
}
