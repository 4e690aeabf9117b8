#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <hortator/export.hpp>
#include <hortator/model.hpp>
#include <memory>
#include <set>
#include <vector>

namespace hortator {

/// Called on every rank at the beginning of save_state() or load_state(), with the folder.
using StateHook = std::function<void(const std::filesystem::path& folder)>;

/// A save or load in which a ModelStateHook is called.
class HORTATOR_API StateHookScope {
 public:
  StateHookScope(std::filesystem::path folder, std::vector<ModelBase> models)
      : folder_(std::move(folder)), models_(std::move(models)) {}

  const std::filesystem::path& folder() const { return folder_; }
  /// In the order of prepare().
  const std::vector<ModelBase>& models() const { return models_; }
  /// Neither saves nor loads the parameters and buffers of this model, which the hook does itself, or somebody else.
  /// All ranks must leave out the same ones.
  void leave_out(std::size_t model);
  const std::set<std::size_t>& left_out() const { return left_out_; }

 private:
  std::filesystem::path folder_;
  std::vector<ModelBase> models_;
  std::set<std::size_t> left_out_ = {};
};

/// The same with the prepared models, some of which it may leave out.
using ModelStateHook = std::function<void(StateHookScope& scope)>;

/// Removes a hook. Destroying the handle does not.
class StateHookHandle {
 public:
  explicit StateHookHandle(std::weak_ptr<ModelStateHook> hook) : hook_(std::move(hook)) {}

  void remove() {
    if (const auto hook = hook_.lock()) *hook = nullptr;
  }

 private:
  std::weak_ptr<ModelStateHook> hook_;
};

}  // namespace hortator
