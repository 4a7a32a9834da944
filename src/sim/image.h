// image.h: a cubin loaded into the device: its globals in device memory, its constants, its machine
// code decoded, its relocations resolved.
//
// Constants of bank 3 are device memory: the address of a `__constant__` variable is an ordinary
// device address whose bytes the kernel sees through c[3], as on a GPU.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "sim/address_space.h"
#include "sim/dim3.h"
#include "sim/op.h"

namespace iket::sim {

class Image;

struct KernelParameter {
  uint32_t offset = 0;  // from the first parameter
  uint32_t size = 0;
};

struct Kernel {
  std::string name;  // mangled
  const Image* image = nullptr;
  uint32_t entry = 0;  // index of its first instruction in the image's code
  uint32_t code_bytes = 0;
  uint32_t registers = 0;      // a thread
  uint32_t static_shared = 0;  // bytes, without the 1 KiB that the system reserves
  uint32_t local_bytes = 0;    // a thread
  uint32_t barriers = 0;
  uint32_t param_base = 0;  // in c[0]
  uint32_t param_bytes = 0;
  std::vector<KernelParameter> params;  // by ordinal
  uint32_t max_threads = 1024;          // from __launch_bounds__ or .maxntid
  Dim3 required_block{0, 0, 0};         // .reqntid; 0: none
  Dim3 required_cluster{0, 0, 0};       // .reqnctapercluster; 0: none
  uint32_t constant_bytes = 0;          // of user constants of its module
  bool uses_printf = false;             // it, or what it calls
  bool uses_heap = false;               // malloc or free
};

struct Global {
  uint64_t address = 0;
  uint64_t size = 0;
};

class Image {
 public:
  // Errors: kBadInput for bytes that are no linked sm_90 cubin; the message says which.
  static Result<std::unique_ptr<Image>> Load(UntrustedBytes cubin, AddressSpace& space);
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;
  ~Image();

  std::span<const Kernel> kernels() const { return kernels_; }
  const Kernel* FindKernel(std::string_view name) const;
  // A `__device__` or `__constant__` variable.
  std::optional<Global> FindGlobal(std::string_view name) const;

  // For the machine. -----------------------------------------------------------------------------
  std::span<const Op> code() const;
  // Functions of the driver that the code calls, in the order of their instructions.
  std::span<const std::string> native_names() const { return native_names_; }
  // Code addresses, as function pointers hold them: instruction n is at code_base() + 16 n.
  uint64_t code_base() const { return code_base_; }
  // Constants of a bank other than 0 as a kernel sees them; empty if it has none.
  std::span<const std::byte> Constants(uint32_t bank, const Kernel& kernel) const;
  // The device address of a bank of the module; 0 if there is none.
  uint64_t ConstantAddress(uint32_t bank) const {
    const auto found = constants_.find(bank);
    return found == constants_.end() ? 0 : found->second.address;
  }
  // Rows of a register file that no instruction of the image reaches past.
  uint32_t register_rows() const { return register_rows_; }
  // Where an instruction stands: the name of its function and the offset in its section.
  struct Place {
    std::string_view function;
    uint64_t offset = 0;
  };
  Place PlaceOf(uint32_t instruction) const;

 private:
  friend class ImageLoader;
  explicit Image(AddressSpace& space) : space_(&space) {}

  struct Piece {  // of device memory
    uint64_t address = 0;
    uint64_t size = 0;
    HostMemory memory;
  };
  struct CodeRange {
    uint32_t first = 0, end = 0;  // instructions
    std::string name;
    uint32_t section = 0;  // first instruction of its section
  };

  AddressSpace* space_;
  std::vector<Kernel> kernels_;
  std::map<std::string, Global, std::less<>> globals_;
  std::vector<Piece> pieces_;
  std::vector<Op> code_;
  std::vector<std::string> native_names_;
  uint64_t code_base_ = 0;
  uint32_t register_rows_ = 0;
  std::vector<CodeRange> functions_;     // by first; those of a section before those inside them
  std::map<uint32_t, Piece> constants_;  // by bank, of the module (3, 4, ...)
  std::map<std::pair<uint32_t, uint32_t>, std::vector<std::byte>> kernel_constants_;  // bank, entry
};

}  // namespace iket::sim
