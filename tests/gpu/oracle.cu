// SPDX-License-Identifier: Apache-2.0
//
// The oracle: kernels that themselves log what they mark. Run it under `iket profile` and hold the
// capture against the log with oracle_check.py, which also knows which cases there are:
//
//   oracle CASE LOG     runs the kernels of a case and writes LOG, one JSON object a line
//   oracle --neighbour SECONDS     keeps the GPU busy beside another process
#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "oracle_kernels.cuh"

namespace oracle {
namespace {

void Check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "oracle: %s failed: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}
#define CHECK(call) Check(call, #call)

int Multiprocessors() {
  int count = 0;
  CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0));
  return count;
}

// One launch and the memory of its log.
struct Launch {
  const char* kernel;
  dim3 grid, block;
  Log log;
  unsigned warps() const {
    return grid.x * grid.y * grid.z * ((block.x * block.y * block.z + 31) / 32);
  }
};

class Case {
 public:
  // Starts a kernel; `start` does the launch. `capacity` events a warp fit into the log.
  template <typename Start>
  void Run(const char* kernel, dim3 grid, dim3 block, unsigned capacity, Start start) {
    Launch launch{kernel, grid, block, {nullptr, nullptr, capacity}};
    const size_t warps = launch.warps();
    CHECK(cudaMalloc(&launch.log.warps, warps * sizeof(WarpHeader)));
    CHECK(cudaMalloc(&launch.log.entries, warps * capacity * sizeof(Entry)));
    CHECK(cudaMemset(launch.log.warps, 0, warps * sizeof(WarpHeader)));
    CHECK(cudaDeviceSynchronize());
    pending_.push_back({launch, [start, launch] { start(launch); }});
  }

  // Launches all of them without a wait in between, so that streams overlap, and writes the log.
  void Finish(const char* name, const char* path) {
    for (const auto& [launch, start] : pending_) {
      start();
      CHECK(cudaGetLastError());
    }
    CHECK(cudaDeviceSynchronize());
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
    for (const auto& [launch, start] : pending_) Write(file, launch);
    if (std::fclose(file) != 0) {
      std::perror(path);
      std::exit(1);
    }
  }

 private:
  static void Write(std::FILE* file, const Launch& launch) {
    std::vector<WarpHeader> warps(launch.warps());
    std::vector<Entry> entries(warps.size() * launch.log.capacity);
    CHECK(cudaMemcpy(warps.data(), launch.log.warps, warps.size() * sizeof(WarpHeader),
                     cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(entries.data(), launch.log.entries, entries.size() * sizeof(Entry),
                     cudaMemcpyDeviceToHost));
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

  std::vector<std::pair<Launch, std::function<void()>>> pending_;
};

#define START(kernel, ...) \
  [=](const Launch& launch) { kernel<<<launch.grid, launch.block>>>(launch.log, __VA_ARGS__); }

// False if there is no such case.
bool RunCase(const std::string& name, const char* path) {
  const unsigned sms = static_cast<unsigned>(Multiprocessors());
  Case run;
  if (name == "full") {
    run.Run("Full", 2 * sms, 1024, 24, START(Full, 8));
  } else if (name == "divergent") {
    run.Run("Divergent", sms, 128, 96, START(Divergent, 16));
  } else if (name == "loops") {
    run.Run("Loops", sms, 128, 256, START(Loops, 9));
  } else if (name == "calls") {
    run.Run("Calls", sms, 128, 64, START(Calls, 10));
  } else if (name == "exits") {
    for (int i = 0; i < 3; ++i) run.Run("Exits", 2 * sms, 128, 64, START(Exits, 6));
  } else if (name == "grid3d") {
    run.Run("Grid3d", dim3(3, 5, 4), dim3(8, 4, 6), 16, START(Grid3d, 5));
    run.Run("Grid3d", dim3(2, 3, 7), dim3(4, 2, 32), 16, START(Grid3d, 5));
    run.Run("Grid3d", dim3(1, 1, 9), dim3(1, 64, 1), 16, START(Grid3d, 5));
  } else if (name == "payloads") {
    run.Run("Payloads", sms, 128, 160, START(Payloads, 16));
  } else if (name == "driver") {
    run.Run("Driver", 8, 64, 32, START(Driver, 6));
  } else if (name == "ranges") {
    run.Run("Ranges", sms, 128, 128, START(Ranges, 8));
  } else if (name == "laps") {
    for (int i = 0; i < 2; ++i) run.Run("Long", 32, 64, 3000, START(Long, 3000, 0));
    // Short warps after the long ones: a begin that was lapped, whole warps behind it.
    run.Run("Divergent", 32, 64, 96, START(Divergent, 16));
  } else if (name == "streams") {
    std::vector<cudaStream_t> streams(4);
    for (cudaStream_t& stream : streams) {
      CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    }
    for (unsigned i = 0; i < 24; ++i) {
      const cudaStream_t stream = streams[i % 4];
      run.Run("Long", 20 + i, 96, 20, [stream](const Launch& launch) {
        Long<<<launch.grid, launch.block, 0, stream>>>(launch.log, 20, 2000);
      });
    }
  } else if (name == "neighbour") {
    for (int i = 0; i < 20; ++i) run.Run("Long", sms, 64, 20, START(Long, 20, 400000));
  } else {
    return false;
  }
  run.Finish(name.c_str(), path);
  return true;
}

void KeepBusy(double seconds) {
  const auto start = std::chrono::steady_clock::now();
  const unsigned sms = static_cast<unsigned>(Multiprocessors());
  do {
    Neighbour<<<2 * sms, 1024>>>(2000000);
    CHECK(cudaDeviceSynchronize());
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
