// handles.h: opaque handles that a program holds, and the objects behind them.
//
// A handle is the object's address, made unknown to the program by its type. Find answers only for
// handles that are alive: a stale or made-up one yields null, never a crash. Objects are shared:
// one that is removed while another thread or a queued task uses it lives until that is done.
// Cost of Find: a hash look-up under a mutex.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace iket::simdriver {

template <typename Object, typename Handle>
class HandleTable {
 public:
  // The table of the process. Never destroyed: tasks may run while the process ends.
  static HandleTable& Get() {
    static auto* table = new HandleTable;
    return *table;
  }

  Handle Add(std::shared_ptr<Object> object) {
    const Handle handle = HandleOf(object.get());
    const std::lock_guard lock(mutex_);
    objects_.emplace(handle, std::move(object));
    return handle;
  }

  std::shared_ptr<Object> Find(Handle handle) const {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(handle);
    return found == objects_.end() ? nullptr : found->second;
  }

  // Takes it out; null if it was not there.
  std::shared_ptr<Object> Remove(Handle handle) {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(handle);
    if (found == objects_.end()) return nullptr;
    std::shared_ptr<Object> object = std::move(found->second);
    objects_.erase(found);
    return object;
  }

  template <typename Predicate>
  std::vector<std::shared_ptr<Object>> RemoveIf(const Predicate& predicate) {
    std::vector<std::shared_ptr<Object>> removed;
    const std::lock_guard lock(mutex_);
    for (auto it = objects_.begin(); it != objects_.end();) {
      if (predicate(*it->second)) {
        removed.push_back(std::move(it->second));
        it = objects_.erase(it);
      } else {
        ++it;
      }
    }
    return removed;
  }

  template <typename Each>
  void ForEach(const Each& each) const {
    std::vector<std::shared_ptr<Object>> all;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [handle, object] : objects_) all.push_back(object);
    }
    for (const auto& object : all) each(*object);
  }

  static Handle HandleOf(Object* object) { return reinterpret_cast<Handle>(object); }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<Handle, std::shared_ptr<Object>> objects_;
};

}  // namespace iket::simdriver
