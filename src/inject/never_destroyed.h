// never_destroyed.h: objects that live until the process is gone, since hooks may run until the
// very end of it; made on first use, without memory that may lack.
#pragma once

#include <cstddef>
#include <new>

namespace iket::inject {

// The one object of this type: a type that stands for one thing, such as a file's own state.
template <typename T>
T& NeverDestroyed() noexcept {
  alignas(T) static std::byte storage[sizeof(T)];
  static T* const kObject = new (storage) T;
  return *kObject;
}

}  // namespace iket::inject
