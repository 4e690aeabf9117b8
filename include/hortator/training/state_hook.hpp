#pragma once

#include <filesystem>
#include <functional>
#include <memory>

namespace hortator {

/// Called on every rank at the beginning of save_state() or load_state(), with the folder.
using StateHook = std::function<void(const std::filesystem::path& folder)>;

/// Removes a hook. Destroying the handle does not.
class StateHookHandle {
 public:
  explicit StateHookHandle(std::weak_ptr<StateHook> hook) : hook_(std::move(hook)) {}

  void remove() {
    if (const auto hook = hook_.lock()) *hook = nullptr;
  }

 private:
  std::weak_ptr<StateHook> hook_;
};

}  // namespace hortator
