#pragma once

#include <filesystem>
#include <functional>
#include <memory>

namespace hortator {

/// What save_state or load_state calls first, on every rank, with the folder.
using StateHook = std::function<void(const std::filesystem::path& folder)>;

/// Takes a hook away again. Letting go of it leaves the hook where it is.
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
