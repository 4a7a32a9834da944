// column.h: vectors of numbers that may be larger than memory.
//
// A Column is a std::vector, but that resize(n) leaves new numbers as they are, for whoever fills
// them next; resize(n, 0) does not. Small ones lie on the heap, those of 4 MiB and more in huge
// pages where the machine has them. After KeepColumnsInFiles() those of 16 MiB and more lie in
// files without a name, which are gone whatever ends the process: their pages are read and written
// back as they are needed, and a keeper sees to it that no more of them are resident than was asked
// for. So every pass over a column should go through it in order, or in a few runs side by side.
//
// Cost: that of a vector; of one in a file, the disk's, and some 16 ns for each 24 bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace iket {

// A file for columns could not be had: the disk is full.
class ColumnFileError : public std::bad_alloc {
 public:
  explicit ColumnFileError(std::string message)
      : message_(std::make_shared<const std::string>(std::move(message))) {}
  const char* what() const noexcept override { return message_->c_str(); }

 private:
  std::shared_ptr<const std::string> message_;  // copies of an exception must not throw
};

// From now on large columns lie in files in `folder`, and this process keeps fewer than
// `resident_bytes` resident, as far as columns and mapped files decide that. For the whole process,
// and for good; called again it only sets both anew. Error (kSystem): no file can be made there, or
// it is in memory itself (tmpfs).
Result<void> KeepColumnsInFiles(const std::string& folder, uint64_t resident_bytes);

// After that call.
bool ColumnsAreInFiles();

// How numbers in a file are gone through from now on: one after the other, as at first, or here and
// there. Then the file system must not bring their neighbours along each time, which drive out
// what is needed.
enum class ColumnUse { kInOrder, kScattered };
void AdviseColumnUse(const void* first, size_t bytes, ColumnUse use);

// Bytes for a column, aligned for any number, whatever they hold. Throws std::bad_alloc, or
// ColumnFileError.
void* TakeColumnBytes(size_t bytes);
void GiveColumnBytes(void* address, size_t bytes) noexcept;

template <typename T>
struct ColumnAllocator {
  using value_type = T;

  ColumnAllocator() = default;
  template <typename Other>
  ColumnAllocator(const ColumnAllocator<Other>&) {}  // NOLINT(google-explicit-constructor)

  T* allocate(size_t count) {
    if (count > SIZE_MAX / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(TakeColumnBytes(count * sizeof(T)));
  }
  void deallocate(T* first, size_t count) noexcept { GiveColumnBytes(first, count * sizeof(T)); }

  template <typename Made>
  void construct(Made* at) {
    ::new (static_cast<void*>(at)) Made;
  }
  template <typename Made, typename... Args>
  void construct(Made* at, Args&&... args) {
    ::new (static_cast<void*>(at)) Made(std::forward<Args>(args)...);
  }

  bool operator==(const ColumnAllocator&) const { return true; }
};

template <typename T>
using Column = std::vector<T, ColumnAllocator<T>>;

template <typename T>
void AdviseColumnUse(const Column<T>& column, ColumnUse use) {
  AdviseColumnUse(column.data(), column.size() * sizeof(T), use);
}

}  // namespace iket
