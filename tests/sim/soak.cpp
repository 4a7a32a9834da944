// SPDX-License-Identifier: Apache-2.0
//
// A long run of a program that does everything at random: loads and unloads images with and without
// marks, as modules and as libraries, launches on several streams, captures, updates and replays
// graphs, frees and allocates, and starts children of which some fault.
//
//   soak FOLDER_OF_IMAGES SEED ACTIONS [HOST_KIB DEVICE_KIB] | soak FOLDER_OF_IMAGES fault
//
// Prints what came out, which depends on the seed alone, how many launches had marks (nodes of
// replays among them), and how many records these wrote:
//
//   values 1f3a77d2 launches 1234 records 45678 children 7
//
// Ends with 1 if a call failed, or if memory of the host or of the device grew from the first third
// of the actions to the end, by more than HOST_KIB (4096: arenas that the C library keeps) or
// DEVICE_KIB (0). By how much says a line on standard error.
#include <cuda.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "../good.h"

namespace {

constexpr int kStreams = 3;
constexpr unsigned kCtas = 2, kThreads = 64, kValues = kCtas * kThreads;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// Memory that is resident in this process, in KiB, without that of files: the collector's log of
// launches is one, and grows.
long ResidentKib() {
  std::ifstream file("/proc/self/statm");
  long all = 0, resident = 0, of_files = 0;
  file >> all >> resident >> of_files;
  return (resident - of_files) * (sysconf(_SC_PAGESIZE) / 1024);
}

// What may be gained from the first third of the actions to the end.
struct Allowed {
  long host_kib = 4096;
  long device_kib = 0;
};

// One image in the context, and a sequence of its own on a stream.
struct Code {
  bool marked = false;
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  CUfunction step = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr values = 0;
  CUgraphExec graph = nullptr;
  uint64_t nodes = 0;    // of the graph
  uint64_t records = 0;  // that a replay writes
};

class Soak {
 public:
  Soak(std::string folder, std::string self, unsigned seed, Allowed allowed)
      : folder_(std::move(folder)), self_(std::move(self)), allowed_(allowed), random_(seed) {
    for (const char* name : {"marked.cubin", "plain.cubin"}) {
      images_.push_back(ReadFile(folder_ + "/" + name));
    }
  }

  bool Run(int actions) {
    CUdevice device = 0;
    CUcontext context = nullptr;
    if (!GOOD(cuInit(0)) || !GOOD(cuDeviceGet(&device, 0)) ||
        !GOOD(cuDevicePrimaryCtxRetain(&context, device)) || !GOOD(cuCtxSetCurrent(context))) {
      return false;
    }
    for (CUstream& stream : streams_) {
      if (!GOOD(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING))) return false;
    }
    long resident = 0;
    size_t free_then = 0, free_now = 0, total = 0;
    for (int i = 0; i < actions; ++i) {
      if (!Act()) return false;
      if (i != actions / 3) continue;
      if (!Empty()) return false;
      resident = ResidentKib();
      if (!GOOD(cuMemGetInfo(&free_then, &total))) return false;
    }
    if (!Empty()) return false;
    std::printf("values %08x launches %llu records %llu children %d\n", values_,
                static_cast<unsigned long long>(launches_),
                static_cast<unsigned long long>(records_), children_);
    std::fflush(stdout);
    long grown_device = 0;
    // What a child held is the supervisor's until it has read it.
    for (int i = 0; i < 200; ++i) {
      if (!GOOD(cuMemGetInfo(&free_now, &total))) return false;
      grown_device = (static_cast<long>(free_then) - static_cast<long>(free_now)) / 1024;
      if (grown_device <= allowed_.device_kib) break;
      usleep(100'000);
    }
    const long grown = ResidentKib() - resident;
    std::fprintf(stderr, "soak: grew by %ld KiB of host and %ld KiB of device memory\n", grown,
                 grown_device);
    return grown <= allowed_.host_kib && grown_device <= allowed_.device_kib;
  }

 private:
  unsigned Random(unsigned below) { return static_cast<unsigned>(random_()) % below; }

  bool Act() {
    if (codes_.empty() || (codes_.size() < 5 && Random(8) == 0)) return Load();
    const size_t which = Random(static_cast<unsigned>(codes_.size()));
    Code& code = codes_[which];
    switch (Random(16)) {
      case 0:
        return Unload(which);
      case 1:
        return Capture(code);
      case 2:
      case 3:
      case 4:
        return Replay(code);
      case 5:
        return GOOD(cuStreamSynchronize(code.stream));
      case 6:
        return Random(40) != 0 || FaultInAChild();
      default:
        return Launch(code);
    }
  }

  bool Load() {
    Code code;
    code.marked = Random(3) != 0;
    const void* image = images_[code.marked ? 0 : 1].data();
    code.stream = streams_[Random(kStreams)];
    if (Random(2) == 0) {
      if (!GOOD(cuModuleLoadData(&code.module, image)) ||
          !GOOD(cuModuleGetFunction(&code.step, code.module, "Step"))) {
        return false;
      }
    } else {
      CUkernel kernel = nullptr;
      if (!GOOD(
              cuLibraryLoadData(&code.library, image, nullptr, nullptr, 0, nullptr, nullptr, 0)) ||
          !GOOD(cuLibraryGetKernel(&kernel, code.library, "Step")) ||
          !GOOD(cuKernelGetFunction(&code.step, kernel))) {
        return false;
      }
    }
    if (!GOOD(cuMemAlloc(&code.values, kValues * sizeof(unsigned))) ||
        !GOOD(cuMemsetD32Async(code.values, Random(1000), kValues, code.stream))) {
      return false;
    }
    codes_.push_back(code);
    return true;
  }

  bool Unload(size_t which) {
    const Code code = codes_[which];
    codes_.erase(codes_.begin() + static_cast<ptrdiff_t>(which));
    unsigned values[kValues];
    if (!GOOD(cuStreamSynchronize(code.stream)) ||
        !GOOD(cuMemcpyDtoH(values, code.values, sizeof values)) || !GOOD(cuMemFree(code.values))) {
      return false;
    }
    for (const unsigned value : values) values_ = values_ * 31 + value;
    if (code.graph != nullptr && !GOOD(cuGraphExecDestroy(code.graph))) return false;
    return code.module != nullptr ? GOOD(cuModuleUnload(code.module))
                                  : GOOD(cuLibraryUnload(code.library));
  }

  bool Empty() {
    while (!codes_.empty()) {
      if (!Unload(codes_.size() - 1)) return false;
    }
    return true;
  }

  // Of one launch: of each warp begin, identity, both ends of the range, and its marks.
  static uint64_t RecordsOf(unsigned salt) { return kValues / 32 * (5 + salt % 3); }

  bool LaunchStep(Code& code, unsigned salt) {
    void* arguments[] = {&code.values, &salt};
    return GOOD(
        cuLaunchKernel(code.step, kCtas, 1, 1, kThreads, 1, 1, 0, code.stream, arguments, nullptr));
  }

  bool Launch(Code& code) {
    const unsigned salt = Random(1000);
    launches_ += code.marked ? 1 : 0;
    records_ += code.marked ? RecordsOf(salt) : 0;
    return LaunchStep(code, salt);
  }

  // A graph of one to three steps; of one that is there already, an update.
  bool Capture(Code& code) {
    CUgraph graph = nullptr;
    if (!GOOD(cuStreamBeginCapture(code.stream, CU_STREAM_CAPTURE_MODE_GLOBAL))) return false;
    const unsigned nodes =
        code.graph != nullptr ? static_cast<unsigned>(code.nodes) : 1 + Random(3);
    code.records = 0;
    for (unsigned i = 0; i < nodes; ++i) {
      const unsigned salt = Random(1000);
      code.records += RecordsOf(salt);
      if (!LaunchStep(code, salt)) return false;
    }
    if (!GOOD(cuStreamEndCapture(code.stream, &graph))) return false;
    bool done = false;
    if (code.graph != nullptr) {
      CUgraphExecUpdateResultInfo info{};
      done = GOOD(cuGraphExecUpdate(code.graph, graph, &info));
    } else {
      code.nodes = nodes;
      done = GOOD(cuGraphInstantiate(&code.graph, graph, 0));
    }
    return GOOD(cuGraphDestroy(graph)) && done;
  }

  bool Replay(Code& code) {
    if (code.graph == nullptr) return true;
    launches_ += code.marked ? code.nodes : 0;
    records_ += code.marked ? code.records : 0;
    return GOOD(cuGraphLaunch(code.graph, code.stream));
  }

  bool FaultInAChild() {
    char fault[] = "fault";
    char* const arguments[] = {self_.data(), folder_.data(), fault, nullptr};
    pid_t child = 0;
    int status = 0;
    if (posix_spawn(&child, self_.c_str(), nullptr, nullptr, arguments, environ) != 0) return false;
    waitpid(child, &status, 0);
    ++children_;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
    std::printf("a child ended with %#x\n", static_cast<unsigned>(status));
    return false;
  }

  std::string folder_, self_;
  Allowed allowed_;
  std::mt19937 random_;
  std::vector<std::string> images_;
  CUstream streams_[kStreams] = {};
  std::vector<Code> codes_;
  unsigned values_ = 0;
  uint64_t launches_ = 0, records_ = 0;
  int children_ = 0;
};

// The child: 0 if the kernel faulted.
int Fault(const std::string& folder) {
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction trap = nullptr;
  CUdeviceptr nothing = 0;
  void* arguments[] = {&nothing};
  const std::string image = ReadFile(folder + "/marked.cubin");
  const bool launched =
      GOOD(cuInit(0)) && GOOD(cuDeviceGet(&device, 0)) &&
      GOOD(cuDevicePrimaryCtxRetain(&context, device)) && GOOD(cuCtxSetCurrent(context)) &&
      GOOD(cuModuleLoadData(&module, image.data())) &&
      GOOD(cuModuleGetFunction(&trap, module, "Trap")) &&
      GOOD(cuLaunchKernel(trap, 1, 1, 1, kThreads, 1, 1, 0, nullptr, arguments, nullptr));
  return launched && cuCtxSynchronize() != CUDA_SUCCESS ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[2], "fault") == 0) return Fault(argv[1]);
  if (argc != 4 && argc != 6) return 2;
  Allowed allowed;
  if (argc == 6) allowed = {std::atol(argv[4]), std::atol(argv[5])};
  Soak soak(argv[1], argv[0], static_cast<unsigned>(std::atoi(argv[2])), allowed);
  return soak.Run(std::atoi(argv[3])) ? 0 : 1;
}
