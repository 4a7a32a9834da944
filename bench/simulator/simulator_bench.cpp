// The software device: warp instructions a second, on one core, by kind of kernel.
//
// "Instructions" are those that warps issued, as the machine counts them; loading the image, the
// launch and the end of the grid are part of the time.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "sim/machine.h"

namespace {

using iket::UntrustedBytes;
using iket::sim::AddressSpace;
using iket::sim::DeviceModel;
using iket::sim::Dim3;
using iket::sim::Image;
using iket::sim::Kernel;
using iket::sim::LaunchConfig;
using iket::sim::LaunchStatistics;
using iket::sim::Machine;

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "simulator_bench: %s\n", what.c_str());
  std::exit(1);
}

class Device {
 public:
  explicit Device(const std::string& cubin)
      : machine_(DeviceModel{}, space_, {.host_threads = 1, .print = {}}) {
    const std::string path = std::string(IKET_CUBINS) + "/" + cubin;
    std::ifstream file(path, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    bytes_.resize(text.size());
    std::memcpy(bytes_.data(), text.data(), text.size());
    auto image = Image::Load(UntrustedBytes(bytes_), space_);
    if (!image) Die(path + ": " + image.error().message);
    image_ = std::move(*image);
  }

  uint64_t Allocate(uint64_t size) {
    const uint64_t address = space_.Reserve(size, 256).value();
    if (!space_.Map(address, size, iket::sim::AllocateHostMemory(size).value())) Die("no memory");
    return address;
  }

  template <typename... Args>
  uint64_t Launch(const std::string& name, Dim3 grid, Dim3 block, uint32_t dynamic_shared,
                  const Args&... args) {
    const Kernel* kernel = nullptr;
    for (const Kernel& candidate : image_->kernels()) {
      if (candidate.name.find(name) != std::string::npos) kernel = &candidate;
    }
    if (kernel == nullptr) Die("no kernel " + name);
    std::vector<std::byte> params;
    const auto put = [&params](const auto& value) {
      params.resize((params.size() + sizeof value - 1) / sizeof value * sizeof value);
      const auto* bytes = reinterpret_cast<const std::byte*>(&value);
      params.insert(params.end(), bytes, bytes + sizeof value);
    };
    (put(args), ...);
    LaunchConfig config;
    config.kernel = kernel;
    config.grid = grid;
    config.block = block;
    config.dynamic_shared = dynamic_shared;
    config.params = params;
    LaunchStatistics statistics;
    if (const auto fault = machine_.Run(config, {}, &statistics)) Die(fault->message);
    return statistics.warp_instructions;
  }

 private:
  std::vector<std::byte> bytes_;
  AddressSpace space_;
  std::unique_ptr<Image> image_;
  Machine machine_;
};

template <typename Launch>
void Measure(benchmark::State& state, Launch launch) {
  uint64_t instructions = 0;
  for (auto _ : state) instructions += launch();
  state.counters["instructions/s"] =
      benchmark::Counter(static_cast<double>(instructions), benchmark::Counter::kIsRate);
}

constexpr Dim3 kGrid{132}, kBlock{256};
constexpr uint64_t kThreads = 132 * 256;

void Fma(benchmark::State& state) {
  Device device("kernels.cubin");
  const uint64_t out = device.Allocate(kThreads * 4);
  Measure(state, [&] { return device.Launch("Fma", kGrid, kBlock, 0, out, 20); });
}
void Hash(benchmark::State& state) {
  Device device("kernels.cubin");
  const uint64_t out = device.Allocate(kThreads * 4);
  Measure(state, [&] { return device.Launch("Hash", kGrid, kBlock, 0, out, 20); });
}
void Stream(benchmark::State& state) {
  Device device("kernels.cubin");
  constexpr int kCount = 1 << 20;
  const uint64_t in = device.Allocate(kCount * 16), out = device.Allocate(kCount * 16);
  Measure(state, [&] { return device.Launch("Stream", kGrid, kBlock, 0, out, in, kCount); });
}
void Reduce(benchmark::State& state) {
  Device device("kernels.cubin");
  const uint64_t in = device.Allocate(1024), out = device.Allocate(kThreads * 4);
  Measure(state, [&] { return device.Launch("Reduce", kGrid, kBlock, 0, out, in, 20); });
}
void Diverge(benchmark::State& state) {
  Device device("kernels.cubin");
  const uint64_t out = device.Allocate(kThreads * 4);
  Measure(state, [&] { return device.Launch("Diverge", kGrid, kBlock, 0, out, 4); });
}
void Gather(benchmark::State& state) {
  Device device("kernels.cubin");
  const uint64_t table = device.Allocate(4096 * 4), out = device.Allocate(kThreads * 4);
  Measure(state, [&] { return device.Launch("Gather", kGrid, kBlock, 0, out, table, 20); });
}
// Tensor cores: each HMMA is 2,048 multiply-adds, which no host does in the time of one
// instruction.
void GemmMma(benchmark::State& state) {
  Device device("gemm_mma.cubin");
  constexpr int kSize = 256;
  const uint64_t a = device.Allocate(kSize * kSize * 2), b = device.Allocate(kSize * kSize * 2),
                 c = device.Allocate(kSize * kSize * 2);
  Measure(state, [&] {
    return device.Launch("GemmMma", {4}, {384}, 200 * 1024, a, b, c, kSize, kSize, kSize);
  });
}

BENCHMARK(Fma)->MeasureProcessCPUTime()->Unit(benchmark::kMillisecond);
BENCHMARK(Hash)->MeasureProcessCPUTime()->Unit(benchmark::kMillisecond);
BENCHMARK(Stream)->MeasureProcessCPUTime()->Unit(benchmark::kMillisecond);
BENCHMARK(Reduce)->MeasureProcessCPUTime()->Unit(benchmark::kMillisecond);
BENCHMARK(Diverge)->MeasureProcessCPUTime()->Unit(benchmark::kMillisecond);
BENCHMARK(Gather)->MeasureProcessCPUTime()->Unit(benchmark::kMillisecond);
BENCHMARK(GemmMma)->MeasureProcessCPUTime()->Unit(benchmark::kMillisecond);

}  // namespace
