// device_model.h: the one device that the machine pretends to be. Numbers of an H200, rounded where
// only their size matters; nothing that runs on it is a measurement.
#pragma once

#include <cstdint>
#include <string_view>

namespace iket::sim {

struct DeviceModel {
  std::string_view name = "iket software device (sm_90)";
  uint32_t compute_major = 9;
  uint32_t compute_minor = 0;
  uint32_t sm_count = 132;
  uint32_t max_warps_per_sm = 64;
  uint32_t max_ctas_per_sm = 32;
  uint32_t max_threads_per_cta = 1024;
  uint32_t registers_per_sm = 65536;
  uint32_t max_registers_per_thread = 255;
  uint32_t shared_bytes_per_sm = 233472;         // 228 KiB
  uint32_t shared_bytes_per_cta = 49152;         // without opting in
  uint32_t shared_bytes_per_cta_optin = 232448;  // 227 KiB
  uint32_t reserved_shared_bytes_per_cta = 1024;
  uint32_t stack_bytes_per_thread = 1024;  // default of CU_LIMIT_STACK_SIZE
  uint64_t printf_bytes = 7 << 20;         // default of CU_LIMIT_PRINTF_FIFO_SIZE
  uint64_t heap_bytes = 8 << 20;           // default of CU_LIMIT_MALLOC_HEAP_SIZE
  uint32_t clock_khz = 1980000;
  uint32_t memory_clock_khz = 2619000;
  uint32_t memory_bus_bits = 6144;
  uint32_t l2_bytes = 50u << 20;
  uint64_t memory_bytes = uint64_t{16} << 30;  // host memory stands behind every byte in use
  uint32_t schedulers_per_sm = 4;
};

}  // namespace iket::sim
