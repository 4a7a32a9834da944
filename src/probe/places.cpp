#include "probe/places.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "probe/kernels.h"

namespace iket::probe {
namespace {

// More than a GPU can have; of more the register does not hold what we think.
constexpr uint32_t kMostGpcs = 64;
// TPCs have two SMs in every generation that knows clusters.
constexpr uint32_t kSmsOfTpc = 2;
constexpr uint64_t kStayNs = 20'000;

class Launcher {
 public:
  Launcher(const DriverCalls& calls, const Bench& bench, uint32_t ctas)
      : calls_(calls), bench_(bench), ctas_(ctas) {}

  // As much shared memory as a CTA may have keeps a second one off its SM.
  void Prepare() {
    CUdevice device = 0;
    int most = 0;
    if (calls_.CtxGetDevice(&device) == CUDA_SUCCESS &&
        calls_.DeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
                                  device) == CUDA_SUCCESS &&
        calls_.FuncSetAttribute(bench_.function(), CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                most) == CUDA_SUCCESS) {
      shared_bytes_ = static_cast<uint32_t>(most);
    }
    // Without it clusters have up to eight CTAs.
    calls_.FuncSetAttribute(bench_.function(), CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
                            1);
  }

  // Nothing if the GPU does not take clusters of this size, or has failed.
  std::optional<std::vector<Seen>> Run(uint32_t cluster, std::chrono::nanoseconds patience) const {
    const uint32_t ctas = ctas_ / cluster * cluster;
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim.x = cluster;
    attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
    CUlaunchConfig config{};
    config.gridDimX = ctas;
    config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = 32;
    config.blockDimY = config.blockDimZ = 1;
    config.sharedMemBytes = shared_bytes_;
    config.hStream = bench_.stream();
    config.attrs = &attribute;
    config.numAttrs = 1;
    auto rows = reinterpret_cast<CUdeviceptr>(bench_.memory());
    uint64_t stay = kStayNs;
    void* arguments[] = {&rows, &stay};
    if (calls_.LaunchKernelEx(&config, bench_.function(), arguments, nullptr) != CUDA_SUCCESS ||
        !bench_.Ends(patience)) {
      return std::nullopt;
    }
    std::vector<Seen> seen(ctas);
    std::memcpy(seen.data(), bench_.memory(), ctas * sizeof(Seen));
    return seen;
  }

 private:
  const DriverCalls& calls_;
  const Bench& bench_;
  uint32_t ctas_;
  uint32_t shared_bytes_ = 0;
};

}  // namespace

void PlaceFinder::Add(const std::vector<Seen>& ctas, uint32_t cluster) {
  had_clusters_ |= cluster > 1;
  for (size_t i = 0; i < ctas.size(); ++i) {
    const Seen& here = ctas[i];
    if (here.sm >= gpc_of_sm_.size() || here.affinity >= kMostGpcs ||
        here.affinity != ctas[i - i % cluster].affinity) {
      contradicted_ = true;
      return;
    }
    int32_t& gpc = gpc_of_sm_[here.sm];
    const auto said = static_cast<int32_t>(here.affinity);
    if (gpc >= 0 && gpc != said) contradicted_ = true;
    gpc = said;
  }
}

std::vector<capture::SmPlace> PlaceFinder::Places() const {
  const bool all_seen = std::ranges::none_of(gpc_of_sm_, [](int32_t gpc) { return gpc < 0; });
  std::vector<capture::SmPlace> unknown(gpc_of_sm_.size());
  if (contradicted_ || !had_clusters_ || !all_seen) return unknown;
  std::vector<capture::SmPlace> places = unknown;
  std::map<int32_t, int32_t> tpcs;  // so far, by GPC
  for (uint32_t sm = 0; sm < places.size(); ++sm) {
    places[sm].gpc = gpc_of_sm_[sm];
    if (sm % kSmsOfTpc == 0) {
      places[sm].tpc = tpcs[places[sm].gpc]++;
      continue;
    }
    if (places[sm].gpc != places[sm - 1].gpc) return unknown;  // half a TPC
    places[sm].tpc = places[sm - 1].tpc;
  }
  return places;
}

std::vector<capture::SmPlace> FindPlaces(const DriverCalls& calls, uint32_t sm_count,
                                         std::chrono::nanoseconds patience) noexcept try {
  constexpr uint32_t kTimes = 4, kLargest = 16;
  const uint32_t ctas = std::max(kTimes * sm_count, kLargest);
  const auto bench = Bench::Set(calls, "iket_probe_place", ctas * sizeof(Seen));
  if (!bench || sm_count == 0) return {};
  Launcher launcher(calls, *bench, ctas);
  launcher.Prepare();
  PlaceFinder finder(sm_count);
  for (uint32_t cluster = kLargest; cluster > 0; cluster /= 2) {
    const auto seen = launcher.Run(cluster, patience);
    if (seen) finder.Add(*seen, cluster);
    if (!seen && !bench->Ends({})) return {};  // it still runs, or the GPU has failed
  }
  return finder.Places();
} catch (...) {
  return {};
}

}  // namespace iket::probe
