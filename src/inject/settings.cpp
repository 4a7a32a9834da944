#include "inject/settings.h"

#include <cstdlib>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

#include "inject/never_destroyed.h"

namespace iket::inject {
namespace {

struct Told {
  std::mutex mutex;
  std::map<std::string, std::string, std::less<>> values;
};
Told& Get() noexcept { return NeverDestroyed<Told>(); }

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
