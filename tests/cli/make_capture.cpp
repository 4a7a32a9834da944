// make_capture: writes a small capture of a GPU of paper, for the command-line tests.
//
//   make_capture KIND OUT
//
//   complete   2 launches of 2 CTAs x 2 warps, three rounds of ranges and a mark each, nothing lost
//   lossy      rings lapped many times
//   empty      a kernel was patched and launched, and no warp wrote anything
//   refused    as complete, and one kernel was refused
//   twins      as complete, and two kernels share its short name, one of them refused
//   simulated  as complete, of a software device
//   stream:N   about N events, as --overflow stream leaves them (trace/synthetic_stream.h)
#include <cstdio>
#include <string>

#include "capture/writer.h"
#include "trace/synthetic.h"
#include "trace/synthetic_stream.h"

namespace {

using iket::trace::SyntheticGpu;
namespace capture = iket::capture;

struct Events {
  uint32_t load, pop, mma, mma_end, tile, mark;
};

void RunKernel(SyntheticGpu& gpu, uint32_t kernel, const Events& events, uint32_t rounds) {
  const uint32_t grid = gpu.Launch(kernel, {2, 1, 1}, {64, 1, 1});
  for (uint32_t cta = 0; cta < 2; ++cta) {
    for (uint32_t index = 0; index < 2; ++index) {
      const auto warp = gpu.Begin(grid, cta, index, cta, index);
      for (uint32_t round = 0; round < rounds; ++round) {
        gpu.Pass(50);
        gpu.Event(warp, events.tile);
        gpu.Pass(40);
        gpu.Event(warp, events.load, round);
        gpu.Pass(200);
        gpu.Event(warp, events.pop);
        gpu.Event(warp, events.mma);
        gpu.Pass(400);
        gpu.Event(warp, events.mma_end);
        gpu.Event(warp, events.mark, 0x3fc00000);  // 1.5
        gpu.Event(warp, events.pop);
      }
      gpu.Pass(30);
      gpu.Exit(warp);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string kind = argv[1];
  if (kind.starts_with("stream:")) {
    const uint64_t events = std::stoull(kind.substr(kind.find(':') + 1));
    return iket::trace::WriteSyntheticStream({.events = events}, argv[2]) ? 0 : 1;
  }
  SyntheticGpu gpu;
  const uint32_t kernel = gpu.AddKernel("_Z5saxpyifPKfPf");
  gpu.facts().sessions.resize(1);
  gpu.facts().sessions[0].pid = 4711;
  gpu.facts().sessions[0].command_line = {"./app", "--fast"};
  using capture::EventKind;
  using capture::PayloadType;
  const Events events = {.load = gpu.Declare(EventKind::kPush, "load", PayloadType::kU32),
                         .pop = gpu.Declare(EventKind::kPop, ""),
                         .mma = gpu.Declare(EventKind::kRangeBegin, "mma"),
                         .mma_end = gpu.Declare(EventKind::kRangeEnd, "mma"),
                         .tile = gpu.Declare(EventKind::kPush, "tile"),
                         .mark = gpu.Declare(EventKind::kMark, "k", PayloadType::kF32)};
  if (kind == "empty") {
    gpu.Launch(kernel, {2, 1, 1}, {64, 1, 1});
  } else {
    for (int launch = 0; launch < 2; ++launch) {
      RunKernel(gpu, kernel, events, kind == "lossy" ? 400 : 3);
    }
  }
  gpu.facts().kernels.back().demangled_name = "saxpy(int, float, float const*, float*)";
  gpu.facts().devices[0].simulated = kind == "simulated";
  if (kind == "refused") {
    gpu.AddKernel("_Z3badv");
    capture::Kernel& refused = gpu.facts().kernels.back();
    refused.demangled_name = "bad()";
    refused.state = capture::KernelState::kRefused;
    refused.refusal = "names UR2 at 0x40";
  }
  if (kind == "twins") {
    RunKernel(gpu, gpu.AddKernel("_ZN1a5saxpyEv"), events, 3);
    gpu.facts().kernels.back().demangled_name = "a::saxpy()";
    gpu.AddKernel("_Z5saxpyIfEvv");
    capture::Kernel& refused = gpu.facts().kernels.back();
    refused.demangled_name = "void saxpy<float>()";
    refused.state = capture::KernelState::kRefused;
    refused.refusal = "names UR2 at 0x40";
  }
  auto writer = capture::Writer::Create(argv[2]);
  if (!writer) return std::fprintf(stderr, "%s\n", writer.error().message.c_str()), 1;
  auto written = gpu.Write(*writer);
  if (written) written = writer->Finish();
  if (!written) std::fprintf(stderr, "%s\n", written.error().message.c_str());
  return written ? 0 : 1;
}
