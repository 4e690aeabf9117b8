#include "simulation/calls/handles.hpp"

#include <atomic>

namespace hortator::simulation {
namespace {

std::uintptr_t new_handle() {
  static std::atomic<std::uintptr_t> last = 0;
  return ++last;
}

}  // namespace

std::uintptr_t HandleTable::add(void* object) {
  const auto handle = new_handle();
  const std::scoped_lock lock(mutex_);
  objects_.emplace(handle, object);
  return handle;
}

void HandleTable::remove(std::uintptr_t handle) noexcept {
  const std::scoped_lock lock(mutex_);
  objects_.erase(handle);
}

void* HandleTable::find(std::uintptr_t handle) const {
  const std::scoped_lock lock(mutex_);
  const auto found = objects_.find(handle);
  return found == objects_.end() ? nullptr : found->second;
}

}  // namespace hortator::simulation
