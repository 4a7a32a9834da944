// SPDX-License-Identifier: Apache-2.0
//
// The oracle: kernels that themselves log what they mark. Run it under `iket profile` and hold the
// capture against the log with oracle_check.py, which also knows which cases there are:
//
//   oracle CASE LOG     runs the kernels of a case and writes LOG, one JSON object a line
//   oracle --neighbour SECONDS     keeps the device busy beside another process
//
// It calls the driver alone, so it is the same program on a GPU and on the software device. Its
// kernels, oracle.cu, are inside it as a cubin.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <string>
#include <vector>

#include "common/embedded_cubin.h"
#include "common/gpu_driver.h"
#include "oracle_log.h"

namespace oracle {
namespace {

// What the kernels that print or allocate are given, more than they use.
constexpr size_t kPrintfBytes = 1 << 20, kHeapBytes = 16 << 20;

class Device {
 public:
  Device() {
    char name[128] = "";
    EXAMPLE_CHECK(cuDeviceGetName(name, sizeof name, 0));
    software_ = std::strstr(name, "software device") != nullptr;
    // Before the first launch, later the driver refuses.
    EXAMPLE_CHECK(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, kPrintfBytes));
    EXAMPLE_CHECK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, kHeapBytes));
    module_ = example::LoadModule(example_cubin);
  }
  CUfunction Find(const char* kernel) const {
    CUfunction function = nullptr;
    example::Check(cuModuleGetFunction(&function, module_, kernel), kernel);
    return function;
  }
  unsigned Multiprocessors() const { return static_cast<unsigned>(gpu_.Multiprocessors()); }
  bool software() const { return software_; }

 private:
  example::Gpu gpu_;
  bool software_ = false;
  CUmodule module_ = nullptr;
};

struct Extent {
  unsigned x = 1, y = 1, z = 1;
  unsigned count() const { return x * y * z; }
};

// One launch and the memory of its log, with room for `capacity` events of each warp.
struct Launch {
  Launch(const char* name, Extent ctas, Extent threads, unsigned capacity)
      : kernel(name),
        grid(ctas),
        block(threads),
        warps(std::vector<WarpHeader>(ctas.count() * ((threads.count() + 31) / 32))),
        entries(std::vector<Entry>(ctas.count() * ((threads.count() + 31) / 32) * capacity)),
        log{warps.data(), entries.data(), capacity} {}

  const char* kernel;
  Extent grid, block;
  example::Array<WarpHeader> warps;
  example::Array<Entry> entries;
  Log log;
  int n = 0;
  unsigned pause = 0;
  CUstream stream = nullptr;
};

class Case {
 public:
  explicit Case(const Device& device) : device_(device) {}

  // `n` and `pause` are the kernel's; most kernels take no pause.
  void Run(const char* kernel, Extent grid, Extent block, unsigned capacity, int n,
           unsigned pause = 0, CUstream stream = nullptr) {
    Launch& launch = launches_.emplace_back(kernel, grid, block, capacity);
    launch.n = n;
    launch.pause = pause;
    launch.stream = stream;
  }

  // Launches all of them without a wait in between, so that streams overlap, and writes the log.
  void Finish(const char* name, const char* path) {
    EXAMPLE_CHECK(cuCtxSynchronize());  // the logs are cleared
    for (Launch& launch : launches_) {
      void* arguments[] = {&launch.log, &launch.n, &launch.pause};
      const auto [x, y, z] = launch.grid;
      example::Check(
          cuLaunchKernel(device_.Find(launch.kernel), x, y, z, launch.block.x, launch.block.y,
                         launch.block.z, 0, launch.stream, arguments, nullptr),
          launch.kernel);
    }
    EXAMPLE_CHECK(cuCtxSynchronize());
    std::FILE* const file = std::fopen(path, "w");
    if (file == nullptr) {
      std::perror(path);
      std::exit(1);
    }
    std::fprintf(file, "{\"case\":\"%s\",\"events\":[", name);
    const char* comma = "";
    for (const Declared& event : kEvents) {
      std::fprintf(file, "%s[\"%s\",\"%s\",\"%s\"]", comma, event.name, event.kind, event.payload);
      comma = ",";
    }
    std::fprintf(file, "]}\n");
    for (const Launch& launch : launches_) Write(file, launch);
    if (std::fclose(file) != 0) {
      std::perror(path);
      std::exit(1);
    }
  }

 private:
  static void Write(std::FILE* file, const Launch& launch) {
    const std::vector<WarpHeader> warps = launch.warps.ToHost();
    const std::vector<Entry> entries = launch.entries.ToHost();
    std::fprintf(file, "{\"kernel\":\"%s\",\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u]}\n",
                 launch.kernel, launch.grid.x, launch.grid.y, launch.grid.z, launch.block.x,
                 launch.block.y, launch.block.z);
    for (size_t w = 0; w < warps.size(); ++w) {
      const WarpHeader& warp = warps[w];
      if (warp.count > launch.log.capacity) {
        std::fprintf(stderr, "oracle: a warp of %s marked %u events, %u fit into its log\n",
                     launch.kernel, warp.count, launch.log.capacity);
        std::exit(1);
      }
      std::fprintf(file,
                   "{\"sm\":%u,\"grid_id\":%u,\"cta\":[%u,%u,%u],\"warp\":%u,\"start\":%u,"
                   "\"events\":[",
                   warp.sm, warp.grid_id, warp.cta[0], warp.cta[1], warp.cta[2], warp.warp,
                   warp.start);
      for (unsigned i = 0; i < warp.count; ++i) {
        const Entry& entry = entries[w * launch.log.capacity + i];
        std::fprintf(file, "%s[%u,%u,%u,%u]", i == 0 ? "" : ",", entry.event, entry.payload,
                     entry.before, entry.after);
      }
      std::fprintf(file, "]}\n");
    }
  }

  const Device& device_;
  std::list<Launch> launches_;
};

// False if there is no such case.
bool RunCase(const std::string& name, const char* path) {
  const Device device;
  const unsigned sms = device.Multiprocessors();
  Case run(device);
  if (name == "full") {
    run.Run("Full", {2 * sms}, {1024}, 24, 8);
  } else if (name == "divergent") {
    run.Run("Divergent", {sms}, {128}, 96, 16);
  } else if (name == "loops") {
    run.Run("Loops", {sms}, {128}, 256, 9);
  } else if (name == "calls") {
    run.Run("Calls", {sms}, {128}, 64, 10);
  } else if (name == "exits") {
    for (int i = 0; i < 3; ++i) run.Run("Exits", {2 * sms}, {128}, 64, 6);
  } else if (name == "grid3d") {
    run.Run("Grid3d", {3, 5, 4}, {8, 4, 6}, 16, 5);
    run.Run("Grid3d", {2, 3, 7}, {4, 2, 32}, 16, 5);
    run.Run("Grid3d", {1, 1, 9}, {1, 64, 1}, 16, 5);
  } else if (name == "payloads") {
    run.Run("Payloads", {sms}, {128}, 160, 16);
  } else if (name == "values") {
    run.Run("Values", {sms}, {128}, 400, 16);
  } else if (name == "driver") {
    run.Run("Driver", {8}, {64}, 32, 6);
  } else if (name == "ranges") {
    run.Run("Ranges", {sms}, {128}, 128, 8);
  } else if (name == "laps") {
    for (int i = 0; i < 2; ++i) run.Run("Long", {32}, {64}, 3000, 3000);
    // Short warps after the long ones: a begin that was lapped, whole warps behind it.
    run.Run("Divergent", {32}, {64}, 96, 16);
  } else if (name == "streams") {
    std::vector<CUstream> streams(4);
    for (CUstream& stream : streams) {
      EXAMPLE_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    }
    for (unsigned i = 0; i < 24; ++i) {
      run.Run("Long", {20 + i}, {96}, 20, 20, 2000, streams[i % 4]);
    }
  } else if (name == "neighbour") {
    // Long enough for a GPU to be taken away and given back many times. The software device shares
    // nothing with that of another process, and waits by executing: there the launches are as many
    // and mark as much, but do not wait so long.
    const unsigned pause = device.software() ? 400 : 400000;
    for (int i = 0; i < 20; ++i) run.Run("Long", {sms}, {64}, 20, 20, pause);
  } else {
    return false;
  }
  run.Finish(name.c_str(), path);
  return true;
}

void KeepBusy(double seconds) {
  const Device device;
  const CUfunction neighbour = device.Find("Neighbour");
  unsigned cycles = 2000000;
  void* arguments[] = {&cycles};
  const auto start = std::chrono::steady_clock::now();
  do {
    EXAMPLE_CHECK(cuLaunchKernel(neighbour, 2 * device.Multiprocessors(), 1, 1, 1024, 1, 1, 0,
                                 nullptr, arguments, nullptr));
    EXAMPLE_CHECK(cuCtxSynchronize());
  } while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() <
           seconds);
}

}  // namespace
}  // namespace oracle

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--neighbour") == 0) {
    oracle::KeepBusy(std::atof(argv[2]));
    return 0;
  }
  if (argc != 3 || argv[1][0] == '-') {
    std::fprintf(stderr, "usage: %s CASE LOG | --neighbour SECONDS\n", argv[0]);
    return 2;
  }
  if (oracle::RunCase(argv[1], argv[2])) return 0;
  std::fprintf(stderr, "oracle: no case '%s'\n", argv[1]);
  return 2;
}
