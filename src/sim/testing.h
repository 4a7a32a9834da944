// testing.h: what the tests of this room share: a device, cubins that the build made, memory.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "sim/heap.h"
#include "sim/machine.h"

namespace iket::sim::testing {

inline std::vector<std::byte> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.is_open()) << path;
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

class Device {
 public:
  explicit Device(MachineOptions options = {})
      : machine(DeviceModel{}, space, std::move(options)) {}

  // `name`: of a cubin in the build folder of this room.
  const Image& Load(const std::string& name) {
    return LoadBytes(ReadFile(IKET_BINARY_DIR "/src/sim/" + name));
  }
  const Image& LoadBytes(const std::vector<std::byte>& bytes) {
    auto image = Image::Load(UntrustedBytes(bytes), space);
    EXPECT_TRUE(image) << (image ? "" : image.error().message);
    images.push_back(std::move(*image));
    return *images.back();
  }
  template <typename T>
  uint64_t Upload(const std::vector<T>& values) {
    const uint64_t bytes = values.size() * sizeof(T);
    const uint64_t address = space.Reserve(bytes, 256).value();
    EXPECT_TRUE(space.Map(address, bytes, AllocateHostMemory(bytes).value()));
    std::memcpy(space.Find(address, bytes), values.data(), bytes);
    return address;
  }
  template <typename T>
  std::vector<T> Download(uint64_t address, size_t count) {
    std::vector<T> values(count);
    std::memcpy(values.data(), space.Find(address, count * sizeof(T)), count * sizeof(T));
    return values;
  }
  // Launches with arguments laid out as a kernel's parameters are.
  template <typename... Args>
  std::optional<Fault> Launch(const Image& image, const std::string& kernel, Dim3 grid, Dim3 block,
                              uint32_t dynamic_shared, const Args&... args) {
    const Kernel* const found = image.FindKernel(kernel);
    if (found == nullptr) {
      ADD_FAILURE() << "no kernel " << kernel;
      return std::nullopt;
    }
    std::vector<std::byte> params;
    const auto put = [&params](const auto& value) {
      const size_t size = sizeof value;
      params.resize((params.size() + size - 1) / size * size);
      const auto* bytes = reinterpret_cast<const std::byte*>(&value);
      params.insert(params.end(), bytes, bytes + size);
    };
    (put(args), ...);
    LaunchConfig config;
    config.kernel = found;
    config.grid = grid;
    config.block = block;
    config.dynamic_shared = dynamic_shared;
    config.params = params;
    config.grid_id = ++launches;
    config.stack_bytes = stack_bytes;
    config.printf_bytes = printf_bytes;
    config.heap = heap;
    return machine.Run(config, {}, &statistics);
  }

  AddressSpace space;
  Heap own_heap{space, DeviceModel{}.heap_bytes};
  Heap* heap = &own_heap;
  uint32_t stack_bytes = DeviceModel{}.stack_bytes_per_thread;
  uint64_t printf_bytes = DeviceModel{}.printf_bytes;
  std::vector<std::unique_ptr<Image>> images;
  Machine machine;
  LaunchStatistics statistics;
  uint64_t launches = 0;
};

#define EXPECT_RUNS(expression)                                          \
  do {                                                                   \
    const std::optional<::iket::sim::Fault> fault_ = (expression);       \
    EXPECT_FALSE(fault_.has_value()) << (fault_ ? fault_->message : ""); \
  } while (false)

}  // namespace iket::sim::testing
