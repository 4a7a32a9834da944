// cute_gemm: CUTLASS's persistent GEMM for Hopper (dense_gemm_persistent.py of the CuTe DSL), clean
// and with marks, launched in turns. What recording costs is the ratio of neighbouring bursts, so
// that the machine's power and heat are in both.
//
//     cute_gemm CLEAN.cubin MARKED.cubin [ROUNDS=30] [LAUNCHES=100]
//
// The cubins come from compile.py, where the CuTe DSL is: neither it nor a GPU is needed here or
// there, respectively. fp16, M = N = K = 4096, A (M,K) and B (N,K) K-major, C (M,N) N-major,
// accumulated in fp32; tile 128x256x64, clusters of 2x1, at most 66 clusters. Everything of the
// launch below (grid, shared memory, the bytes of the eight parameters) is what the host functions
// that the DSL compiles with these kernels do; only the addresses in the tensor maps are put in.
#include <cuda.h>
#include <elf.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr unsigned kSize = 4096;
constexpr size_t kElements = size_t{kSize} * kSize;
constexpr size_t kBytes = kElements * 2;
constexpr unsigned kSharedBytes = 230400;
constexpr unsigned kSecondsAtMost = 240;

[[noreturn]] void Fail(const std::string& what) {
  printf("cute_gemm: FAILED: %s\n", what.c_str());
  fflush(stdout);
  _exit(1);
}

void Check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) {
    return;
  }
  const char* name = nullptr;
  const char* text = nullptr;
  if (cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) {
    name = "unknown error";
  }
  if (cuGetErrorString(result, &text) != CUDA_SUCCESS || text == nullptr) {
    text = "";
  }
  Fail(std::string(what) + ": " + name + " (" + std::to_string(static_cast<int>(result)) + ") " +
       text);
}
#define CHECK(call) Check(call, #call)

void OnAlarm(int) {
  static const char kText[] = "cute_gemm: FAILED: took too long: a kernel hangs?\n";
  if (write(1, kText, sizeof kText - 1) < 0) {
    _exit(2);
  }
  _exit(1);
}

std::vector<char> ReadFile(const char* path) {
  FILE* file = fopen(path, "rb");
  if (file == nullptr) {
    Fail(std::string("cannot open ") + path);
  }
  std::vector<char> data;
  char buffer[65536];
  size_t got;
  while ((got = fread(buffer, 1, sizeof buffer, file)) > 0) {
    data.insert(data.end(), buffer, buffer + got);
  }
  fclose(file);
  return data;
}

// The name of the only kernel of a cubin: that of its only section .text.NAME.
std::string KernelName(const std::vector<char>& cubin, const char* path) {
  Elf64_Ehdr header;
  if (cubin.size() < sizeof header) {
    Fail(std::string(path) + " is no cubin");
  }
  memcpy(&header, cubin.data(), sizeof header);
  if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shstrndx >= header.e_shnum ||
      header.e_shoff + size_t{header.e_shnum} * sizeof(Elf64_Shdr) > cubin.size()) {
    Fail(std::string(path) + " is no cubin");
  }
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  memcpy(sections.data(), cubin.data() + header.e_shoff, sections.size() * sizeof(Elf64_Shdr));
  const Elf64_Shdr& strings = sections[header.e_shstrndx];
  if (strings.sh_offset + strings.sh_size > cubin.size() || strings.sh_size == 0) {
    Fail(std::string(path) + " is no cubin");
  }
  const std::string table(cubin.data() + strings.sh_offset, strings.sh_size);
  std::string found;
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_name >= table.size()) {
      continue;
    }
    const std::string name(table.c_str() + section.sh_name);
    if (name.rfind(".text.", 0) == 0) {
      if (!found.empty()) {
        Fail(std::string(path) + " has more than one kernel");
      }
      found = name.substr(6);
    }
  }
  if (found.empty()) {
    Fail(std::string(path) + " has no kernel");
  }
  return found;
}

// fp16 of k/1024, exact for |k| <= 2048.
uint16_t HalfOf1024ths(int k) {
  if (k == 0) {
    return 0;
  }
  unsigned magnitude = static_cast<unsigned>(std::abs(k));
  int exponent =
      5;  // of 1024/1024 with the leading bit at bit 10: biased 15 when magnitude is 1024
  int top = 0;
  while ((magnitude >> (top + 1)) != 0) {
    ++top;
  }
  exponent += top;
  const unsigned mantissa =
      (top <= 10 ? magnitude << (10 - top) : magnitude >> (top - 10)) & 0x3ffU;
  return static_cast<uint16_t>((k < 0 ? 0x8000U : 0U) | static_cast<unsigned>(exponent) << 10 |
                               mantissa);
}

double ValueOfHalf(uint16_t half) {
  const int exponent = half >> 10 & 31;
  const int mantissa = half & 0x3ff;
  double value;
  if (exponent == 31) {
    value = mantissa != 0 ? NAN : INFINITY;
  } else if (exponent == 0) {
    value = std::ldexp(mantissa, -24);
  } else {
    value = std::ldexp(mantissa + 1024, exponent - 25);
  }
  return (half & 0x8000) != 0 ? -value : value;
}

struct Random {
  uint64_t state;
  uint32_t Next() {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<uint32_t>(state >> 33);
  }
};

std::vector<uint16_t> RandomMatrix(uint64_t seed) {
  Random random{seed};
  std::vector<uint16_t> matrix(kElements);
  for (uint16_t& element : matrix) {
    element = HalfOf1024ths(static_cast<int>(random.Next() % 2049) - 1024);
  }
  return matrix;
}

// A tensor map as the DSL's host function makes it; it leaves the last 64 bytes as they are.
void MakeMap(CUtensorMap* map, CUdeviceptr address, uint32_t format, uint8_t box_inner) {
  auto* out = reinterpret_cast<unsigned char*>(map);
  memset(out, 0, sizeof *map);
  const uint64_t start = address & 0x1fffffffffffff0ULL;
  const uint32_t stride = kSize * 2 / 16;
  const uint32_t extents[2] = {kSize - 1, kSize - 1};
  memcpy(out + 0x00, &start, 8);
  memcpy(out + 0x08, &format, 4);
  memcpy(out + 0x0c, &stride, 4);
  memcpy(out + 0x20, extents, 8);
  out[0x37] = box_inner - 1;
  out[0x38] = 128 - 1;
}

struct DivMod {  // as recorded for a divisor of 16
  uint32_t divisor = 16;
  uint32_t multiplier = 1;
  uint8_t shift1 = 1;
  uint8_t shift2 = 3;
  uint8_t padding[2] = {0, 0};
};
static_assert(sizeof(DivMod) == 12, "");
static_assert(sizeof(CUtensorMap) == 128, "");

struct Parameters {
  CUtensorMap a;
  CUtensorMap b;
  CUtensorMap c;
  uint8_t nothing = 0;
  DivMod divisors[4];
};

struct Kernel {
  const char* path = nullptr;
  CUfunction function = nullptr;

  void Load(const char* from) {
    path = from;
    const std::vector<char> cubin = ReadFile(path);
    const std::string name = KernelName(cubin, path);
    CUmodule module = nullptr;
    CHECK(cuModuleLoadData(&module, cubin.data()));
    CHECK(cuModuleGetFunction(&function, module, name.c_str()));
    CHECK(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                             kSharedBytes));
    int registers = 0;
    int fixed = 0;
    CHECK(cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function));
    CHECK(cuFuncGetAttribute(&fixed, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function));
    printf("%s: %s, %d registers, %d + %u bytes of shared memory\n", path, name.c_str(), registers,
           fixed, kSharedBytes);
  }

  void Launch(CUstream stream, Parameters& parameters) const {
    CUlaunchAttribute cluster;
    memset(&cluster, 0, sizeof cluster);
    cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    cluster.value.clusterDim.x = 2;
    cluster.value.clusterDim.y = 1;
    cluster.value.clusterDim.z = 1;
    CUlaunchConfig config;
    memset(&config, 0, sizeof config);
    config.gridDimX = 2;
    config.gridDimY = 1;
    config.gridDimZ = 66;
    config.blockDimX = 384;
    config.blockDimY = 1;
    config.blockDimZ = 1;
    config.sharedMemBytes = kSharedBytes;
    config.hStream = stream;
    config.attrs = &cluster;
    config.numAttrs = 1;
    void* arguments[8] = {&parameters.a,           &parameters.b,           &parameters.c,
                          &parameters.nothing,     &parameters.divisors[0], &parameters.divisors[1],
                          &parameters.divisors[2], &parameters.divisors[3]};
    CHECK(cuLaunchKernelEx(&config, function, arguments, nullptr));
  }
};

double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double at = q * static_cast<double>(values.size() - 1);
  const size_t below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

void CheckSamples(const char* path, const std::vector<uint16_t>& a, const std::vector<uint16_t>& b,
                  const std::vector<uint16_t>& c) {
  for (size_t i = 0; i < kElements; ++i) {
    if ((c[i] & 0x7c00) == 0x7c00) {
      Fail(std::string(path) + ": C[" + std::to_string(i / kSize) + "][" +
           std::to_string(i % kSize) + "] was not written, or is no number");
    }
  }
  Random random{64};
  for (int i = 0; i < 64; ++i) {
    unsigned row = random.Next() % kSize;
    unsigned column = random.Next() % kSize;
    if (i < 4) {
      row = (i & 1) != 0 ? kSize - 1 : 0;
      column = (i & 2) != 0 ? kSize - 1 : 0;
    }
    double expected = 0;
    for (unsigned k = 0; k < kSize; ++k) {
      expected +=
          ValueOfHalf(a[size_t{row} * kSize + k]) * ValueOfHalf(b[size_t{column} * kSize + k]);
    }
    const double found = ValueOfHalf(c[size_t{row} * kSize + column]);
    if (!(std::fabs(found - expected) <= 0.03 + 0.001 * std::fabs(expected))) {
      char text[200];
      snprintf(text, sizeof text, "%s: C[%u][%u] is %g, should be %g", path, row, column, found,
               expected);
      Fail(text);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  if (argc < 3 || argc > 5) {
    Fail("usage: cute_gemm CLEAN.cubin MARKED.cubin [rounds=30] [launches per burst=100]");
  }
  const int rounds = argc > 3 ? atoi(argv[3]) : 30;
  const int burst = argc > 4 ? atoi(argv[4]) : 100;
  if (rounds < 1 || burst < 1) {
    Fail("rounds and launches must be at least 1");
  }
  signal(SIGALRM, OnAlarm);
  alarm(kSecondsAtMost);

  CHECK(cuInit(0));
  CUdevice device = 0;
  CUcontext context = nullptr;
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  char name[256] = "";
  int processors = 0;
  int driver = 0;
  CHECK(cuDeviceGetName(name, sizeof name, device));
  CHECK(cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
  CHECK(cuDriverGetVersion(&driver));
  printf("%s, %d SMs, CUDA %d.%d\n", name, processors, driver / 1000, driver % 1000 / 10);

  Kernel clean;
  Kernel marked;
  clean.Load(argv[1]);
  marked.Load(argv[2]);

  CUdeviceptr a = 0;
  CUdeviceptr b = 0;
  CUdeviceptr c = 0;
  CHECK(cuMemAlloc(&a, kBytes));
  CHECK(cuMemAlloc(&b, kBytes));
  CHECK(cuMemAlloc(&c, kBytes));
  const std::vector<uint16_t> host_a = RandomMatrix(1);
  const std::vector<uint16_t> host_b = RandomMatrix(2);
  CHECK(cuMemcpyHtoD(a, host_a.data(), kBytes));
  CHECK(cuMemcpyHtoD(b, host_b.data(), kBytes));

  Parameters parameters;
  MakeMap(&parameters.a, a, 0x00246312, 64);
  MakeMap(&parameters.b, b, 0x00246312,
          64);  // 128 of the 256 rows: each CTA of a cluster loads half, for both
  MakeMap(&parameters.c, c, 0x00244312, 32);
  CUstream stream = nullptr;
  CUevent begin = nullptr;
  CUevent end = nullptr;
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CHECK(cuEventCreate(&begin, CU_EVENT_DEFAULT));
  CHECK(cuEventCreate(&end, CU_EVENT_DEFAULT));
  CHECK(cuCtxSynchronize());

  std::vector<uint16_t> results[2];
  for (int i = 0; i < 2; ++i) {
    const Kernel& kernel = i == 0 ? clean : marked;
    CHECK(cuMemsetD8Async(c, 0xff, kBytes, stream));  // no numbers
    kernel.Launch(stream, parameters);
    const CUresult result = cuStreamSynchronize(stream);
    if (result != CUDA_SUCCESS) {
      Check(result, (std::string("the first launch of ") + kernel.path).c_str());
    }
    results[i].resize(kElements);
    CHECK(cuMemcpyDtoH(results[i].data(), c, kBytes));
    CheckSamples(kernel.path, host_a, host_b, results[i]);
  }
  if (memcmp(results[0].data(), results[1].data(), kBytes) != 0) {
    size_t differ = 0;
    for (size_t i = 0; i < kElements; ++i) {
      differ += results[0][i] != results[1][i] ? 1 : 0;
    }
    Fail("the two kernels computed different bits: " + std::to_string(differ) + " elements");
  }
  printf("results right: both the same bits, 64 elements of each as computed on the CPU\n");

  const auto microseconds = [&](const Kernel& kernel) {
    CHECK(cuEventRecord(begin, stream));
    for (int i = 0; i < burst; ++i) {
      kernel.Launch(stream, parameters);
    }
    CHECK(cuEventRecord(end, stream));
    CHECK(cuEventSynchronize(end));
    float milliseconds = 0;
    CHECK(cuEventElapsedTime(&milliseconds, begin, end));
    return 1000.0 * static_cast<double>(milliseconds) / burst;
  };

  for (int i = 0; i < 4; ++i) {
    const Kernel& kernel = i % 2 == 0 ? clean : marked;
    for (int j = 0; j < 100; ++j) {
      kernel.Launch(stream, parameters);
    }
  }
  CHECK(cuStreamSynchronize(stream));

  std::vector<double> clean_times;
  std::vector<double> marked_times;
  std::vector<double> over;
  std::vector<double> over_by_order[2];
  for (int round = 0; round < rounds; ++round) {
    double clean_time;
    double marked_time;
    if (round % 2 == 0) {
      clean_time = microseconds(clean);
      marked_time = microseconds(marked);
    } else {
      marked_time = microseconds(marked);
      clean_time = microseconds(clean);
    }
    clean_times.push_back(clean_time);
    marked_times.push_back(marked_time);
    over.push_back(100 * (marked_time / clean_time - 1));
    over_by_order[round % 2].push_back(over.back());
  }
  printf(
      "clean %.2f us, marked %.2f us, marked to clean %+.2f %% (quartiles %+.2f..%+.2f, %d "
      "rounds)\n",
      Quantile(clean_times, 0.5), Quantile(marked_times, 0.5), Quantile(over, 0.5),
      Quantile(over, 0.25), Quantile(over, 0.75), rounds);
  printf("clean %.2f..%.2f us, marked %.2f..%.2f us (least..most), %d launches a burst",
         Quantile(clean_times, 0), Quantile(clean_times, 1), Quantile(marked_times, 0),
         Quantile(marked_times, 1), burst);
  if (rounds > 1) {
    printf("; clean first %+.2f %%, marked first %+.2f %%", Quantile(over_by_order[0], 0.5),
           Quantile(over_by_order[1], 0.5));
  }
  printf("\n");
  return 0;
}
