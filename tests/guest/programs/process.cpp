// SPDX-License-Identifier: Apache-2.0
//
// process CASE: a process that does with itself what processes do, around launches of one marked
// kernel. It prints what was computed, then ends as its case says. Each launch is kGrid * kBlock /
// 32 = 16 warps of 2 * kRounds + 1 = 7 events: 112.
//
// Two programs are made of it: process (the CUDA runtime) and process_driver.
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>

#include "gpu.h"

extern char** environ;

namespace {

using guest::Stream;

void Print(const char* what, const std::vector<unsigned>& words) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (unsigned word : words) hash = (hash ^ word) * 0x100000001b3u;
  std::printf("%s: %016llx\n", what, static_cast<unsigned long long>(hash));
  std::fflush(stdout);
}

// One launch, waited for and printed.
void Once(const char* what) {
  unsigned* out = guest::Allocate();
  guest::Launch(out, nullptr);
  Print(what, guest::Read(out));
}

// The child's exit code, or 128 and its signal.
int WaitFor(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int RunOnce() {
  Once("once");
  return 0;
}

int ResetInTheMiddle() {
  Once("before");
  guest::Reset();
  Once("after");
  return 0;
}

int ResetAtTheEnd() {
  Once("once");
  guest::Reset();
  return 0;
}

int QuickExit() {
  Once("once");
  _exit(3);
}

int Abort() {
  Once("once");
  std::abort();
}

int Exception() {
  Once("once");
  throw std::runtime_error("nobody catches this");
}

int Signal() {
  Once("once");
  raise(SIGTERM);
  return 0;
}

int Killed() {
  Once("once");
  raise(SIGKILL);
  return 0;
}

// A kernel that writes to where nothing is. Ends with 1 and the name of the error.
int Fault() {
  const unsigned* memory = guest::Allocate();
  guest::Launch(nullptr, nullptr);
  guest::Read(memory);
  return 0;
}

// The child has no GPU, but runs the handlers of exit().
int ForkThenExit() {
  Once("before");
  const pid_t child = fork();
  if (child == 0) std::exit(5);
  std::printf("child: %d\n", WaitFor(child));
  Once("after");
  return 0;
}

// The only GPU work is the child's.
int WorkInTheChild() {
  const pid_t child = fork();
  if (child == 0) {
    Once("child");
    return 0;
  }
  std::printf("child: %d\n", WaitFor(child));
  return 0;
}

int WorkInBoth() {
  const pid_t child = fork();
  if (child != 0) std::printf("child: %d\n", WaitFor(child));
  Once(child == 0 ? "child" : "parent");
  return 0;
}

// Two programs at once.
int Spawn() {
  pid_t children[2];
  char program[] = "process", what[] = "silent";
  char* arguments[] = {program, what, nullptr};
  for (pid_t& child : children) {
    if (posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments, environ) != 0) return 1;
  }
  for (pid_t child : children) std::printf("child: %d\n", WaitFor(child));
  return 0;
}

int Silent() {
  unsigned* out = guest::Allocate();
  guest::Launch(out, nullptr);
  return guest::Read(out)[0] == 0 ? 1 : 0;
}

int Threads() {
  constexpr int kThreads = 2, kStreams = 2, kLaunches = 10;
  unsigned* out[kThreads][kStreams];
  for (auto& row : out) {
    for (unsigned*& memory : row) memory = guest::Allocate();
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Stream streams[kStreams];
      for (Stream& stream : streams) stream = guest::NewStream();
      for (int i = 0; i < kLaunches; ++i) {
        for (int s = 0; s < kStreams; ++s) guest::Launch(out[t][s], streams[s]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& row : out) {
    for (const unsigned* memory : row) Print("stream", guest::Read(memory));
  }
  return 0;
}

// The kernel's first launch is captured, so that whatever loads it lazily does so in the capture.
int Replay(int times) {
  unsigned* out = guest::Allocate();
  const Stream stream = guest::NewStream();
  guest::BeginCapture(stream);
  guest::Launch(out, stream);
  guest::Launch(out, stream);
  const guest::GraphExec graph = guest::EndCapture(stream);
  for (int i = 0; i < times; ++i) guest::LaunchGraph(graph, stream);
  Print("graph", guest::Read(out));
  return 0;
}
int Capture() { return Replay(1); }
int Graph() { return Replay(20); }

// The supervisor, if this process has one, dies while the program runs.
int SupervisorDies() {
  Once("before");
  std::string name(32, '\0');
  std::FILE* file = std::fopen(("/proc/" + std::to_string(getppid()) + "/comm").c_str(), "re");
  if (file == nullptr) return 1;
  name.resize(std::fread(name.data(), 1, name.size(), file));
  std::fclose(file);
  if (name == "iket\n" && kill(getppid(), SIGKILL) != 0) return 1;
  Once("after");
  unsigned* out = guest::Allocate();
  for (int i = 0; i < 2000; ++i) guest::Launch(out, nullptr);
  Print("many", guest::Read(out));
  std::printf("done\n");
  return 0;
}

#if !defined(GUEST_RUNTIME)
// Modules come and go, from before the context has any other.
int Reload() {
  CUcontext context = nullptr;
  GUEST_CHECK(cuInit(0));
  GUEST_CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  GUEST_CHECK(cuCtxSetCurrent(context));
  CUdeviceptr memory = 0;
  GUEST_CHECK(cuMemAlloc(&memory, guest::kThreads * sizeof(unsigned)));
  GUEST_CHECK(cuMemsetD32(memory, 0, guest::kThreads));
  auto* out = reinterpret_cast<unsigned*>(memory);
  for (int i = 0; i < 20; ++i) {
    CUmodule module = nullptr;
    guest::LaunchAs(guest::LoadStep(&module), out, nullptr);
    GUEST_CHECK(cuCtxSynchronize());
    GUEST_CHECK(cuModuleUnload(module));
  }
  Print("reload", guest::Read(out));
  return 0;
}

int Contexts() {
  CUcontext contexts[2];
  unsigned* out[2];
  CUfunction steps[2];
  GUEST_CHECK(cuInit(0));
  for (int i = 0; i < 2; ++i) {
#if CUDA_VERSION >= 13000
    GUEST_CHECK(cuCtxCreate(&contexts[i], nullptr, 0, 0));
#else
    GUEST_CHECK(cuCtxCreate(&contexts[i], 0, 0));
#endif
    steps[i] = guest::LoadStep();
    CUdeviceptr memory = 0;
    GUEST_CHECK(cuMemAlloc(&memory, guest::kThreads * sizeof(unsigned)));
    GUEST_CHECK(cuMemsetD32(memory, 0, guest::kThreads));
    out[i] = reinterpret_cast<unsigned*>(memory);
  }
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 2; ++i) {
      GUEST_CHECK(cuCtxSetCurrent(contexts[i]));
      guest::LaunchAs(steps[i], out[i], nullptr);
    }
  }
  for (int i = 0; i < 2; ++i) {
    GUEST_CHECK(cuCtxSetCurrent(contexts[i]));
    Print("context", guest::Read(out[i]));
    GUEST_CHECK(cuCtxDestroy(contexts[i]));
  }
  return 0;
}
#endif

struct Case {
  const char* name;
  int (*run)();
};
constexpr Case kCases[] = {
    {"once", RunOnce},
    {"reset", ResetInTheMiddle},
    {"reset_last", ResetAtTheEnd},
    {"_exit", QuickExit},
    {"abort", Abort},
    {"exception", Exception},
    {"signal", Signal},
    {"killed", Killed},
    {"fault", Fault},
    {"fork_exit", ForkThenExit},
    {"fork_child", WorkInTheChild},
    {"fork_both", WorkInBoth},
    {"spawn", Spawn},
    {"silent", Silent},
    {"threads", Threads},
    {"capture", Capture},
    {"graph", Graph},
    {"supervisor_dies", SupervisorDies},
#if !defined(GUEST_RUNTIME)
    {"contexts", Contexts},
    {"reload", Reload},
#endif
};

}  // namespace

int main(int argc, char** argv) {
  for (const Case& one : kCases) {
    if (argc == 2 && std::strcmp(argv[1], one.name) == 0) return one.run();
  }
  std::fprintf(stderr, "usage: process CASE, one of");
  for (const Case& one : kCases) std::fprintf(stderr, " %s", one.name);
  std::fprintf(stderr, "\n");
  return 2;
}
