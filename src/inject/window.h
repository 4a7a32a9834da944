// window.h: the ring memory of one CUDA context.
//
// Device memory made with cuMemCreate, so that it can be exported to the supervisor and outlives
// this process; mapped at an address whose low 32 bits are zero (ring/layout.h). What the address
// range holds beyond the rings of this GPU's SMs maps to a sink of 2 MiB. Where memory for rings is
// not to be had, all of it is sink: code that is patched already stores somewhere harmless. The
// table has a sink of its own then, since warps go on from what they read there.
//
// Rings in the host's memory (`--flight`) are for where device memory cannot be handed over, or
// must not be used: memory files that the GPU writes through the bus, and that any process can
// read.
//
// A second window of nothing but sinks takes what is recorded by warps that are left out. It costs
// 2 MiB and is made where it is needed.
#pragma once

#include <cstdint>
#include <vector>

#include "base/descriptor.h"
#include "base/error.h"
#include "inject/driver.h"
#include "ring/layout.h"

namespace iket::inject {

class Window {
 public:
  // Makes the window in the current context, of `device`; not `keeps`: as a sink, without rings.
  // Errors: kSystem; nothing is left then.
  static Result<Window> Create(CUdevice device, const ring::Layout& layout, bool keeps);
  // The same in the host's memory.
  static Result<Window> CreateInHost(const ring::Layout& layout);

  Window(Window&&) noexcept = default;
  Window& operator=(Window&&) noexcept = default;
  // Windows live as long as their context; the driver frees them with the process.
  ~Window() = default;

  uint64_t base() const { return base_; }
  // Makes the window for those who are left out, once. The context must be current.
  Result<void> MakeSinks();
  bool has_sinks() const { return has_sinks_; }
  uint64_t sink_base() const { return base_ | ring::kSinkBit; }
  bool is_sink() const { return is_sink_; }
  bool is_in_host() const { return is_in_host_; }
  uint64_t device_bytes() const { return device_bytes_; }
  const ring::Layout& layout() const { return layout_; }

  // Shareable descriptors of table and rings; errors where the system cannot share (kSystem).
  struct Shared {
    int table = -1;
    int rings = -1;
  };
  Result<Shared> Share() const;

  // Copies `bytes` at `offset` of table or rings to the host, on a stream of our own. The window's
  // context must be current.
  Result<void> CopyTable(void* to, size_t bytes) const;
  Result<void> CopyRings(void* to, uint64_t offset, size_t bytes) const;

 private:
  Window() = default;
  Result<void> MapInHost();
  // Maps a piece of a memory file, which begins at `from`, as often as `bytes` take, and lets the
  // GPU write there.
  Result<void> MapFile(uint64_t address, uint64_t bytes, const Descriptor& file, uint64_t from,
                       uint64_t piece);
  Result<void> CreateMemories(bool keeps);
  Result<void> MapAll();
  Result<void> Clear() const;
  void GiveBack();
  Result<void> MapAt(uint64_t address, uint64_t bytes, CUmemGenericAllocationHandle handle);
  // Maps `sink`, of 2 MiB, as often as it takes.
  Result<void> MapSink(uint64_t from, uint64_t to, CUmemGenericAllocationHandle sink);
  Result<void> Allow(uint64_t from, uint64_t to) const;
  Result<void> Copy(void* to, uint64_t address, size_t bytes) const;

  struct Mapping {
    uint64_t address = 0;
    uint64_t bytes = 0;
  };
  std::vector<Mapping> mappings_;

  ring::Layout layout_;
  CUdevice device_ = 0;
  Descriptor table_file_, rings_file_, sink_file_;  // of a window in the host's memory
  std::vector<Mapping> registered_;
  CUmemGenericAllocationHandle table_ = 0;
  CUmemGenericAllocationHandle rings_ = 0;
  CUmemGenericAllocationHandle sink_ = 0;
  CUmemGenericAllocationHandle sink_table_ = 0;  // of the second window
  uint64_t reserved_ = 0;                        // where the reserved addresses begin
  uint64_t reserved_bytes_ = 0;                  // 0 if there are none
  uint64_t base_ = 0;
  bool is_sink_ = false;
  bool is_in_host_ = false;
  bool has_sinks_ = false;
  uint64_t device_bytes_ = 0;
};

}  // namespace iket::inject
