#include "inject/settings.h"

#include <cstddef>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <string_view>

namespace iket::inject {
namespace {

struct Told {
  std::mutex mutex;
  std::map<std::string, std::string, std::less<>> values;
};
// Never destroyed, since hooks may run until the end, and made without memory that may lack.
Told& Get() noexcept {
  alignas(Told) static std::byte storage[sizeof(Told)];
  static auto* const kTold = new (storage) Told;
  return *kTold;
}

}  // namespace

std::string Setting(const char* variable) {
  {
    Told& told = Get();
    const std::lock_guard lock(told.mutex);
    const auto found = told.values.find(std::string_view(variable));
    if (found != told.values.end()) return found->second;
  }
  const char* value = std::getenv(variable);
  return value != nullptr ? value : "";
}

void SetSetting(const char* variable, std::string value) {
  Told& told = Get();
  const std::lock_guard lock(told.mutex);
  told.values.insert_or_assign(variable, std::move(value));
}

}  // namespace iket::inject
