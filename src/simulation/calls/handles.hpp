#pragma once

#include <hortator/hortator.h>

#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace hortator::simulation {

/// The objects of one kind that the handles of C programs name. A handle is a number that is never used again, so that
/// one whose object is gone, or is of another kind, is found. May be used by several threads.
class HandleTable {
 public:
  /// The handle of a new object.
  std::uintptr_t add(void* object);
  void remove(std::uintptr_t handle) noexcept;
  /// Null if the handle names nothing.
  void* find(std::uintptr_t handle) const;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::uintptr_t, void*> objects_ = {};
};

/// Base of what a handle of the type `Opaque*` names: `Object`. A copy has a handle of its own.
template <typename Opaque, typename Object>
class Handled {
 public:
  Opaque* handle() const { return reinterpret_cast<Opaque*>(handle_); }
  /// Null if the handle names nothing.
  static Object* find(const Opaque* handle) {
    return static_cast<Object*>(static_cast<Handled*>(table().find(reinterpret_cast<std::uintptr_t>(handle))));
  }
  /// The handle names nothing from now on.
  void forget_handle() noexcept { table().remove(handle_); }

 protected:
  Handled() : handle_(table().add(this)) {}
  Handled(const Handled& /*other*/) : Handled() {}
  Handled& operator=(const Handled&) = delete;
  ~Handled() { forget_handle(); }

 private:
  // Never destroyed: objects of a run that was not ended may live longer than static ones.
  static HandleTable& table() {
    static auto& instance = *new HandleTable();
    return instance;
  }

  std::uintptr_t handle_;
};

}  // namespace hortator::simulation
