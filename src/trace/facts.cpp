#include "trace/facts.h"

#include <fmt/format.h>

#include <limits>
#include <unordered_map>

#include "trace/kernel_names.h"

namespace iket::trace {
namespace {

// CTAs of one blockIdx.x that are looked at one by one.
constexpr uint64_t kMostCtasTried = 4096;

ring::CtaFilter FilterOf(const capture::KernelFilter& filter) {
  ring::CtaFilter wanted{.sample = std::max(filter.sample, 1u)};
  if (filter.by_cluster) wanted.cluster = filter.cluster;
  return wanted;
}

// CTAs of a cluster, which the launch says or the kernel itself.
const std::array<uint32_t, 3>& ClusterOf(const capture::KernelFilter& filter,
                                         const std::array<uint32_t, 3>& launched) {
  return launched[0] != 0 ? launched : filter.cluster_ctas;
}

std::string UuidText(const std::array<uint8_t, 16>& uuid) {
  std::string text = "GPU-";
  for (size_t i = 0; i < uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", uuid[i]);
  }
  return text;
}

// What was found out of a device's SMs while it ran.
std::vector<SmPlace> PlacesOf(const capture::Capture& facts, const capture::Device& device) {
  constexpr uint32_t kMostSms = 4096;
  std::vector<SmPlace> places;
  for (const capture::PlacedSm& placed : facts.placed_sms) {
    const capture::Context* const context = facts.FindContext(placed.context);
    if (context == nullptr || context->device != device.index) continue;
    if (placed.sm >= std::min(device.sm_count, kMostSms)) continue;
    if (placed.sm >= places.size()) places.resize(placed.sm + 1);
    places[placed.sm] = {placed.place.tpc, placed.place.gpc};
  }
  return places;
}

std::string CommandLine(const std::vector<std::string>& arguments) {
  return fmt::format("{}", fmt::join(arguments, " "));
}

}  // namespace

void StateFacts(const capture::Capture& facts, StringInterner& strings, Model& model) {
  if (!facts.sessions.empty()) {
    const capture::Session& session = facts.sessions.front();
    model.process_id = session.pid;
    model.command = strings.Intern(CommandLine(session.command_line));
    model.host = strings.Intern(session.host);
  }
  for (const capture::DeclaredEdge& edge : facts.edges) {
    model.edges.push_back({.dag = strings.Intern(edge.dag),
                           .from = strings.Intern(edge.from),
                           .to = strings.Intern(edge.to),
                           .label = strings.Intern(edge.label),
                           .via = strings.Intern(edge.via)});
  }
  for (const capture::Device& from : facts.devices) {
    Device device;
    device.name = strings.Intern(from.name);
    device.uuid = strings.Intern(UuidText(from.uuid));
    device.simulated = from.simulated;
    device.sm_count = from.sm_count;
    device.compute_major = from.compute_major;
    device.compute_minor = from.compute_minor;
    device.sm_clock_max_khz = from.sm_clock_max_khz;
    device.index = from.index;
    for (const capture::SmPlace& place : from.topology) {
      device.places.push_back({place.tpc, place.gpc});
    }
    if (device.places.empty()) device.places = PlacesOf(facts, from);
    model.devices.push_back(std::move(device));
  }

  std::unordered_map<std::string, uint32_t> kernels_of_name;
  std::vector<std::string> short_names;
  for (const capture::Kernel& kernel : facts.kernels) {
    const std::string& name =
        kernel.demangled_name.empty() ? kernel.mangled_name : kernel.demangled_name;
    short_names.push_back(ShortKernelName(name));
    ++kernels_of_name[short_names.back()];
  }
  for (size_t i = 0; i < facts.kernels.size(); ++i) {
    const capture::Kernel& from = facts.kernels[i];
    const bool left_out = from.state == capture::KernelState::kLeftOut;
    std::string& name = short_names[i];
    const bool numbered = kernels_of_name[name] > 1;
    if (numbered) name += fmt::format("#{}", from.index);
    model.kernels.push_back({.mangled = strings.Intern(from.mangled_name),
                             .demangled = strings.Intern(from.demangled_name),
                             .short_name = strings.Intern(name),
                             .numbered = numbered,
                             .refusal = strings.Intern(left_out ? "" : from.refusal),
                             .left_out = left_out});
  }

  const capture::Damage& damage = facts.damage;
  model.damage = strings.Intern(damage.Summary());
  model.counters.chunks_damaged = damage.chunks_damaged + damage.chunks_malformed +
                                  damage.chunks_missing + damage.chunks_unwritten;
}

uint32_t KernelRow(const capture::Capture& facts, uint32_t number) {
  const capture::Kernel* kernel = facts.FindKernel(number);
  return kernel == nullptr ? kNoRow : static_cast<uint32_t>(kernel - facts.kernels.data());
}

std::optional<uint32_t> DeviceRow(const capture::Capture& facts, uint32_t context) {
  const capture::Context* found = facts.FindContext(context);
  const capture::Device* device = found == nullptr ? nullptr : facts.FindDevice(found->device);
  if (device == nullptr) return std::nullopt;
  return static_cast<uint32_t>(device - facts.devices.data());
}

uint32_t WarpIndex(const ring::Identity& identity, const std::array<uint32_t, 3>& block) {
  const bool fits =
      identity.tid_x < block[0] && identity.tid_y < block[1] && identity.tid_z < block[2];
  if (!fits || block[2] > 32) return kNoRow;
  return ring::WarpInCta(identity, block[0], block[1]);
}

uint64_t WarpsExpected(const std::array<uint32_t, 3>& grid, const std::array<uint32_t, 3>& block) {
  auto product = [](uint64_t a, uint64_t b) {
    uint64_t result;
    return __builtin_mul_overflow(a, b, &result) ? std::numeric_limits<uint64_t>::max() : result;
  };
  const uint64_t threads = product(product(block[0], block[1]), block[2]);
  const uint64_t warps = threads / 32 + (threads % 32 != 0 ? 1 : 0);
  return product(product(product(grid[0], grid[1]), grid[2]), warps);
}

uint64_t WarpsExpected(const capture::KernelFilter* filter, const std::array<uint32_t, 3>& grid,
                       const std::array<uint32_t, 3>& block,
                       const std::array<uint32_t, 3>& cluster) {
  if (filter == nullptr) return WarpsExpected(grid, block);
  if (filter->by_sm) return 0;
  const auto ctas = ring::PassingCtas(FilterOf(*filter), grid, ClusterOf(*filter, cluster));
  if (!ctas) return 0;
  const uint64_t warps = WarpsExpected({1, 1, 1}, block);
  uint64_t all = 0;
  return __builtin_mul_overflow(*ctas, warps, &all) ? 0 : all;
}

uint64_t CtasExpected(const capture::KernelFilter* filter, uint32_t x, std::optional<uint32_t> y,
                      std::optional<uint32_t> z, const std::array<uint32_t, 3>& grid,
                      const std::array<uint32_t, 3>& cluster) {
  const uint64_t rows = y ? 1 : grid[1], layers = z ? 1 : grid[2];
  if (filter == nullptr) return rows * layers;
  if (filter->by_sm || rows * layers > kMostCtasTried) return 0;
  const ring::CtaFilter wanted = FilterOf(*filter);
  uint64_t ctas = 0;
  for (uint32_t k = 0; k < layers; ++k) {
    for (uint32_t j = 0; j < rows; ++j) {
      const std::array<uint32_t, 3> cta{x, y.value_or(j), z.value_or(k)};
      ctas += ring::Passes(wanted, cta, grid, ClusterOf(*filter, cluster)) ? 1 : 0;
    }
  }
  return ctas;
}

}  // namespace iket::trace
