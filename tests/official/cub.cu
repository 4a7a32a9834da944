// SPDX-License-Identifier: Apache-2.0
//
// CUB with its own annotations: a scan and a reduce_by_key, whose results are checked on the host,
// and a kernel that uses the macros by which CUB is annotated in ways that CUB does not on every
// GPU.
//
//   cub [N]              items; default 1048576
//
// Built with _CCCL_ENABLE_IKET, as `cub` with our marks and as `cub_official` with NVIDIA's.
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <cuda/std/functional>
#include <iket/iket_device_apis.cuh>

#include "common/gpu_runtime.h"

CREATE_IKET_START_END_RANGE(Life);
CREATE_IKET_START_END_RANGE_EX(Wait, unsigned, iket::IketEventPairMode::kNameOnly);
CREATE_IKET_PUSH_POP_RANGE(Step);
CREATE_IKET_PUSH_POP_RANGE_EX(Work, int);
CREATE_IKET_MARKER(Ready);
CREATE_IKET_MARKER_EX(Cycle, int);

namespace {

// A parameter of a template that has the name of a range, as in CUB.
template <int Step>
__device__ __noinline__ float Multiply(float x) {
  IKET_RANGE_PUSH(Step);
  x *= static_cast<float>(Step);
  IKET_RANGE_POP();
  return x;
}

}  // namespace

// Ranges that do not nest: Wait begins in one step and ends in the next.
extern "C" __global__ void Macros(float* data, int n) {
  IKET_RANGE_START(Life);
  IKET_MARKER(Ready);
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  for (int k = 0; k < n; ++k) {
    IKET_RANGE_PUSH_EX(Work, k);
    if (k > 0) IKET_RANGE_END_EX(Wait, k);
    IKET_RANGE_START_EX(Wait, 10 * k);
    data[i] = Multiply<2>(data[i] + 1.0f);
    IKET_MARKER_EX(Cycle, k);
    IKET_RANGE_POP();
  }
  if (n > 0) IKET_RANGE_END_EX(Wait, n);
  IKET_RANGE_END(Life);
}

namespace {

// A call of CUB: once for the size of what it needs, once to do it.
template <typename Call>
void Run(const Call& call) {
  size_t bytes = 0;
  EXAMPLE_CHECK(call(nullptr, bytes));
  const example::Array<char> storage((std::vector<char>(bytes)));
  EXAMPLE_CHECK(call(storage.data(), bytes));
  EXAMPLE_CHECK(cudaDeviceSynchronize());
}

template <typename T>
int Differences(const char* what, const std::vector<T>& found, const std::vector<T>& expected) {
  for (size_t i = 0; i < expected.size(); ++i) {
    if (found[i] == expected[i]) continue;
    std::fprintf(stderr, "cub: %s[%zu] is %g and not %g\n", what, i, static_cast<double>(found[i]),
                 static_cast<double>(expected[i]));
    return 1;
  }
  std::printf("cub: %s: %zu values as expected\n", what, expected.size());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const int n = argc > 1 ? std::atoi(argv[1]) : 1 << 20;
  if (argc > 2 || n <= 0) {
    std::fprintf(stderr, "usage: cub [N]\n");
    return 2;
  }
  std::vector<int> values(n), keys(n), sums(n), unique, reduced;
  int sum = 0;
  for (int i = 0; i < n; ++i) {
    values[i] = i % 5 - 1;
    keys[i] = i / 7;
    sums[i] = sum += values[i];
    if (unique.empty() || unique.back() != keys[i]) {
      unique.push_back(keys[i]);
      reduced.push_back(0);
    }
    reduced.back() += values[i];
  }
  const example::Array<int> in(values), by(keys), out(std::vector<int>(n, -1)),
      out_keys(std::vector<int>(n, -1)), out_sums(std::vector<int>(n, -1)),
      count(std::vector<int>(1, -1));
  Run([&](void* storage, size_t& bytes) {
    return cub::DeviceScan::InclusiveSum(storage, bytes, in.data(), out.data(), n);
  });
  Run([&](void* storage, size_t& bytes) {
    return cub::DeviceReduce::ReduceByKey(storage, bytes, by.data(), out_keys.data(), in.data(),
                                          out_sums.data(), count.data(), cuda::std::plus<>{}, n);
  });
  constexpr int kCtas = 2, kThreads = 64, kSteps = 3;
  const example::Array<float> data(std::vector<float>(kCtas * kThreads));
  Macros<<<kCtas, kThreads>>>(data.data(), kSteps);
  EXAMPLE_CHECK(cudaGetLastError());
  EXAMPLE_CHECK(cudaDeviceSynchronize());
  return Differences("scan", out.ToHost(), sums) |
         Differences("number of keys", count.ToHost(), {static_cast<int>(unique.size())}) |
         Differences("keys", out_keys.ToHost(), unique) |
         Differences("reduce_by_key", out_sums.ToHost(), reduced) |
         Differences("macros", data.ToHost(), std::vector<float>(kCtas * kThreads, 14.0f));
}
