#include "sim/image.h"

#include <algorithm>

#include "sim/op.h"

namespace iket::sim {

Image::~Image() {
  for (const Piece& piece : pieces_) {
    (void)space_->Unmap(piece.address, piece.size);
    (void)space_->Release(piece.address);
  }
  if (code_base_ != 0) (void)space_->Release(code_base_);
}

const Kernel* Image::FindKernel(std::string_view name) const {
  const auto found = std::find_if(kernels_.begin(), kernels_.end(),
                                  [&](const Kernel& kernel) { return kernel.name == name; });
  return found == kernels_.end() ? nullptr : &*found;
}

std::optional<Global> Image::FindGlobal(std::string_view name) const {
  const auto found = globals_.find(name);
  return found == globals_.end() ? std::nullopt : std::optional(found->second);
}

std::span<const Op> Image::code() const { return code_; }

std::span<const std::byte> Image::Constants(uint32_t bank, const Kernel& kernel) const {
  const auto own = kernel_constants_.find({bank, kernel.entry});
  if (own != kernel_constants_.end()) return own->second;
  const auto module = constants_.find(bank);
  if (module == constants_.end()) return {};
  return {module->second.memory.get(), static_cast<size_t>(module->second.size)};
}

Image::Place Image::PlaceOf(uint32_t instruction) const {
  // The innermost function that holds it: the last that begins before and does not end before.
  const CodeRange* best = nullptr;
  for (const CodeRange& range : functions_) {
    if (range.first > instruction) break;
    if (instruction < range.end) best = &range;
  }
  if (best == nullptr) return {"code outside all functions", uint64_t{instruction} * 16};
  return {best->name, uint64_t{instruction - best->section} * 16};
}

}  // namespace iket::sim
