// Any bytes: the loader of the software device refuses them or makes an image of them whose every
// word can be printed and whose kernels can be started, whatever they then do, and stopped.
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "mutate_image.h"
#include "sass/decode.h"
#include "sim/heap.h"
#include "sim/machine.h"

namespace {

using iket::UntrustedBytes;
using iket::sim::AddressSpace;
using iket::sim::DeviceModel;
using iket::sim::Heap;
using iket::sim::Image;
using iket::sim::Kernel;
using iket::sim::LaunchConfig;
using iket::sim::Machine;
using iket::sim::MachineOptions;
using iket::sim::Op;
namespace sass = iket::sass;

void Start(Machine& machine, const Kernel& kernel, Heap& heap) {
  const std::vector<std::byte> params(64);
  const LaunchConfig config{.kernel = &kernel,
                            .grid = {2},
                            .block = {48},
                            .cluster = {},
                            .dynamic_shared = 0,
                            .params = params,
                            .grid_id = 1,
                            .printf_bytes = 1 << 10,
                            .heap = &heap};
  std::stop_source stop;
  std::jthread watch([&stop](const std::stop_token& done) {
    for (int i = 0; i < 20 && !done.stop_requested(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    stop.request_stop();
  });
  (void)machine.Run(config, stop.get_token());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  AddressSpace space;
  const auto image = Image::Load(UntrustedBytes(data, size), space);
  if (!image) return 0;
  uint64_t pc = 0;
  for (const Op& op : (*image)->code()) {
    (void)sass::Disassemble(op.word, pc);
    pc += sass::kInstructionBytes;
  }
  DeviceModel model;
  model.sm_count = 2;
  MachineOptions options;
  options.host_threads = 1;
  options.print = [](std::string_view) {};
  Machine machine(model, space, options);
  Heap heap(space, 1 << 16);
  size_t started = 0;
  for (const Kernel& kernel : (*image)->kernels()) {
    if (++started > 3) break;
    Start(machine, kernel, heap);
  }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  return iket::fuzz::MutateSection(data, size, max_size, seed,
                                   [](const iket::cubin::Section&) { return true; });
}
