// SPDX-License-Identifier: Apache-2.0
//
// attach CASE NUMBER...: what attach.py runs as it is, under `iket profile`, and under NVIDIA's
// run-iket. Prints one JSON object a fact; what a tool must have counted is among them ("events").
//
// Three programs are made of it: attach and attach_nvidia (the CUDA runtime; marks.h says how they
// differ) and attach_driver.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <vector>

#include "gpu.h"

namespace {

using attach::Allocate;
using attach::Launch;
using attach::Wait;

using Clock = std::chrono::steady_clock;
double NanosecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}

void WaitOrFail() {
  if (const std::string error = Wait(); !error.empty()) attach::Failed("a kernel", error.c_str());
}

// Numbers of the command line, all of which must be there.
struct Numbers {
  int count;
  char** words;
  double operator[](int index) const {
    if (index >= count) attach::Failed("the command line", "a number is missing");
    return std::atof(words[index]);
  }
  unsigned Whole(int index) const { return static_cast<unsigned>((*this)[index]); }
};

void PrintEvents(double events, double warps) {
  std::printf("{\"events\":%.0f,\"warps\":%.0f}\n", events, warps);
}

// Of all processes together: what a tool took is the difference to a run without it.
void PrintMemory() {
  const attach::Memory memory = attach::GetMemory();
  std::printf("{\"used_mib\":%.1f}\n", static_cast<double>(memory.total - memory.free) / (1 << 20));
}

// --- Cost of a launch: launch BATCHES LAUNCHES CORE

struct Times {
  std::vector<double> host, each;  // ns a launch: until all were issued, until all were done
};

void PrintTimes(const char* kernel, const char* what, std::vector<double> values) {
  std::sort(values.begin(), values.end());
  std::printf(
      "{\"launch\":\"%s\",\"time\":\"%s\",\"least\":%.1f,\"quartile\":%.1f,\"median\":%.1f}\n",
      kernel, what, values.front(), values[values.size() / 4], values[values.size() / 2]);
}

// This thread alone and not those of the driver, which exist by now, so that they do not take turns
// on one core.
void StayOn(unsigned core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  if (sched_setaffinity(0, sizeof cores, &cores) != 0) std::perror("sched_setaffinity");
}

void Batch(attach::Kernel kernel, unsigned launches, Times& times) {
  WaitOrFail();  // so that no launch waits for room in the queue
  const auto begin = Clock::now();
  for (unsigned i = 0; i < launches; ++i) Launch(kernel, 1, 32);
  times.host.push_back(NanosecondsSince(begin) / launches);
  WaitOrFail();
  times.each.push_back(NanosecondsSince(begin) / launches);
}

int Launches(Numbers numbers) {
  const unsigned batches = numbers.Whole(0), launches = numbers.Whole(1);
  Times unmarked, marked, discarded;
  for (const auto kernel : {attach::kUnmarked, attach::kMarked}) Batch(kernel, launches, discarded);
  StayOn(numbers.Whole(2));
  for (unsigned i = 0; i < batches; ++i) {
    Batch(attach::kUnmarked, launches, unmarked);
    Batch(attach::kMarked, launches, marked);
  }
  PrintTimes("unmarked", "host", unmarked.host);
  PrintTimes("unmarked", "each", unmarked.each);
  PrintTimes("marked", "host", marked.host);
  PrintTimes("marked", "each", marked.each);
  PrintEvents((batches + 1.0) * launches, (batches + 1.0) * launches);
  return 0;
}

// --- start: the smallest program that has something to trace

int Once(Numbers) {
  Launch(attach::kMarked, 1, 32);
  WaitOrFail();
  PrintEvents(1, 1);
  return 0;
}

// --- counts FIRST SECOND: iterations of the first run in this folder, and of later ones

int Counts(Numbers numbers) {
  const bool again = std::ifstream("ran_before").good();
  std::ofstream("ran_before") << "\n";
  const unsigned n = numbers.Whole(again ? 1 : 0);
  Launch(attach::kSteps, 2, 64, Allocate<float>(128), static_cast<int>(n));
  WaitOrFail();
  std::printf("{\"iterations\":%u}\n", n);
  PrintEvents(4 * (1 + 2.0 * n), 4);
  return 0;
}

// --- fault LAUNCHES MARKS: a kernel that faults after others have finished. Ends with 3.

int Fault(Numbers numbers) {
  const unsigned launches = numbers.Whole(0), marks = numbers.Whole(1);
  float* out = Allocate<float>(128);
  for (unsigned i = 0; i < launches; ++i) Launch(attach::kSteps, 2, 64, out, 5);
  WaitOrFail();
  Launch(attach::kBad, 1, 32, out, static_cast<int>(marks));
  const std::string error = Wait();
  PrintEvents(launches * 4 * 11.0 + 1 + marks, launches * 4.0 + 1);
  std::printf("{\"error\":\"%s\"}\n", error.c_str());
  return error.empty() ? 1 : 3;
}

// --- ends LAUNCHES CTAS FMAS, many LAUNCHES CTAS: short CTAs of 8 warps

int ManyLaunches(attach::Kernel kernel, unsigned launches, unsigned ctas, int n, int events) {
  float* out = Allocate<float>(size_t{ctas} * 256);
  Launch(kernel, 1, 32, out, n);  // loads the code
  WaitOrFail();
  const auto begin = Clock::now();
  for (unsigned i = 0; i < launches; ++i) Launch(kernel, ctas, 256, out, n);
  WaitOrFail();
  std::printf("{\"us\":%.3f}\n", NanosecondsSince(begin) / 1000 / launches);
  const double warps = 8.0 * ctas * launches + 1;
  PrintEvents(events * warps, warps);
  PrintMemory();
  return 0;
}
int EndsOnly(Numbers numbers) {
  return ManyLaunches(attach::kEnds, numbers.Whole(0), numbers.Whole(1),
                      static_cast<int>(numbers.Whole(2)), 0);
}
int Many(Numbers numbers) {
  return ManyLaunches(attach::kSteps, numbers.Whole(0), numbers.Whole(1), 0, 1);
}

// A tool that reads while kernels run needs time to start; what it misses until then is no rate.
void LetTheReaderStart(unsigned milliseconds) {
  WaitOrFail();
  usleep(1000 * milliseconds);
}

// --- stream CTAS_A_SM THREADS RATE SECONDS MARKS SETTLE_MS: RATE events a second over all warps, 0
// for as fast as they can, until SECONDS are over or each warp made MARKS. 0 CTAs a SM: two in all.

int StreamFor(Numbers numbers) {
  const unsigned sms = static_cast<unsigned>(attach::Multiprocessors());
  const unsigned ctas = numbers.Whole(0) == 0 ? 2 : numbers.Whole(0) * sms;
  const unsigned threads = numbers.Whole(1);
  const double hertz = 1000.0 * attach::Kilohertz(), rate = numbers[2], warps = ctas * threads / 32;
  const unsigned gap = rate == 0 ? 0 : static_cast<unsigned>(std::min(2e9, warps * hertz / rate));
  auto* marked = Allocate<unsigned long long>(1);
  Launch(attach::kStream, 1, 32, marked, 0u, gap, 0ll);  // loads the code, and marks nothing
  LetTheReaderStart(numbers.Whole(5));
  std::printf("{\"running\":true,\"gap\":%u}\n", gap);
  std::fflush(stdout);
  const auto begin = Clock::now();
  Launch(attach::kStream, ctas, threads, marked, numbers.Whole(4), gap,
         static_cast<long long>(numbers[3] * hertz));
  WaitOrFail();
  std::printf("{\"seconds\":%.6f}\n", NanosecondsSince(begin) / 1e9);
  PrintEvents(static_cast<double>(attach::Read(marked)), warps + 1);
  return 0;
}

// --- compute|load CTAS_A_SM THREADS STEPS INNER REPEATS SETTLE_MS: times of a kernel that works

int Work(attach::Kernel kernel, Numbers numbers) {
  const unsigned sms = static_cast<unsigned>(attach::Multiprocessors());
  const unsigned ctas = numbers.Whole(0) == 0 ? 2 : numbers.Whole(0) * sms;
  const unsigned threads = numbers.Whole(1), steps = numbers.Whole(2), inner = numbers.Whole(3);
  const unsigned repeats = numbers.Whole(4);
  // Larger than any L2 cache; small on the software device, where two CTAs run.
  constexpr unsigned kVectorBytes = 16;
  const unsigned vectors = numbers.Whole(0) == 0 ? 1u << 12 : 1u << 26;
  float* out = Allocate<float>(size_t{ctas} * threads);
  const unsigned* in = nullptr;
  if (kernel == attach::kLoad) in = Allocate<unsigned>(size_t{vectors} * kVectorBytes / 4);
  const auto launch = [&](unsigned grid, unsigned block, unsigned marks) {
    if (kernel == attach::kLoad) {
      Launch(kernel, grid, block, out, in, vectors, marks, inner);
    } else {
      Launch(kernel, grid, block, out, marks, inner);
    }
  };
  launch(1, 32, 0);  // loads the code, and marks nothing
  LetTheReaderStart(numbers.Whole(5));
  for (unsigned i = 0; i < repeats; ++i) {
    const auto begin = Clock::now();
    launch(ctas, threads, steps);
    WaitOrFail();
    std::printf("{\"ms\":%.4f}\n", NanosecondsSince(begin) / 1e6);
  }
  const double warps = 1.0 * ctas * threads / 32 * repeats;
  PrintEvents(warps * steps, warps + 1);
  return 0;
}
int ComputeFor(Numbers numbers) { return Work(attach::kCompute, numbers); }
int LoadFor(Numbers numbers) { return Work(attach::kLoad, numbers); }

struct Case {
  const char* name;
  int (*run)(Numbers);
};
constexpr Case kCases[] = {{"launch", Launches},  {"start", Once},         {"counts", Counts},
                           {"fault", Fault},      {"ends", EndsOnly},      {"many", Many},
                           {"stream", StreamFor}, {"compute", ComputeFor}, {"load", LoadFor}};

}  // namespace

int main(int argc, char** argv) {
  for (const Case& one : kCases) {
    if (argc < 2 || std::strcmp(argv[1], one.name) != 0) continue;
    attach::Start();
    std::printf("{\"device\":\"%s\",\"multiprocessors\":%d,\"cuda_driver\":%d}\n",
                attach::Name().c_str(), attach::Multiprocessors(), attach::Version());
    return one.run({argc - 2, argv + 2});
  }
  std::fprintf(stderr, "usage: attach CASE NUMBER..., one of");
  for (const Case& one : kCases) std::fprintf(stderr, " %s", one.name);
  std::fprintf(stderr, "\n");
  return 2;
}
