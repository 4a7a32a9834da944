#include "trace/facts.h"

#include <fmt/format.h>

#include <limits>
#include <unordered_map>

#include "trace/kernel_names.h"

namespace iket::trace {
namespace {

std::string UuidText(const std::array<uint8_t, 16>& uuid) {
  std::string text = "GPU-";
  for (size_t i = 0; i < uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", uuid[i]);
  }
  return text;
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
    std::string& name = short_names[i];
    const bool numbered = kernels_of_name[name] > 1;
    if (numbered) name += fmt::format("#{}", from.index);
    model.kernels.push_back({.mangled = strings.Intern(from.mangled_name),
                             .demangled = strings.Intern(from.demangled_name),
                             .short_name = strings.Intern(name),
                             .numbered = numbered,
                             .refusal = strings.Intern(from.refusal)});
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

}  // namespace iket::trace
