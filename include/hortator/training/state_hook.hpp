#pragma once

#include <concepts>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <hortator/export.hpp>
#include <hortator/model.hpp>
#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace hortator {

/// A save or load in which a StateHook is called.
class HORTATOR_API StateHookScope {
 public:
  StateHookScope(std::filesystem::path checkpoint, std::filesystem::path folder, std::vector<ModelBase> models)
      : checkpoint_(std::move(checkpoint)), folder_(std::move(folder)), models_(std::move(models)) {}
  StateHookScope(const StateHookScope&) = delete;
  StateHookScope& operator=(const StateHookScope&) = delete;

  /// The folder `hooks` of the checkpoint, for files of the program. Hooks of a save write into it: it is empty, and
  /// becomes part of the checkpoint with everything else. Hooks of a load read it: it is missing if nothing was
  /// written. All ranks have the same one. For a folder of Hugging Face Accelerate it is that folder itself.
  const std::filesystem::path& folder() const { return folder_; }
  /// The folder of the checkpoint. While it is saved, it is not there yet, or an older one is.
  const std::filesystem::path& checkpoint() const { return checkpoint_; }
  /// In the order of prepare().
  const std::vector<ModelBase>& models() const { return models_; }
  /// Leaves the parameters and buffers of this model out of saving and loading: the program saves them in another way.
  /// All ranks must leave out the same models.
  void leave_out(std::size_t model);
  const std::set<std::size_t>& left_out() const { return left_out_; }

 private:
  std::filesystem::path checkpoint_;
  std::filesystem::path folder_;
  std::vector<ModelBase> models_;
  std::set<std::size_t> left_out_ = {};
};

template <typename F>
concept FolderHook = std::invocable<F&, const std::filesystem::path&>;
template <typename F>
concept ModelsHook = !FolderHook<F> && std::invocable<F&, StateHookScope&>;

/// Called on every rank at the beginning of save_state() or load_state(): a function of the folder for the program's
/// own files, or of a StateHookScope&, which has the models as well and may leave some out. A generic lambda gets the
/// folder. What a hook of a save writes there is saved, and there for the hooks of a load. If a hook throws on one
/// rank, the save or load ends on all.
class StateHook {
 public:
  template <FolderHook F>
  StateHook(F function)  // NOLINT(google-explicit-constructor): made from lambdas
      : call_(std::make_shared<Call>(
            [function = std::move(function)](StateHookScope& scope) mutable { function(scope.folder()); })) {}
  template <ModelsHook F>
  StateHook(F function)  // NOLINT(google-explicit-constructor)
      : call_(std::make_shared<Call>(std::move(function))) {}

  void operator()(StateHookScope& scope) const {
    if (const auto call = call_) (*call)(scope);  // kept while it runs: it may remove itself
  }
  /// Calls do nothing from now on.
  void reset() { call_ = nullptr; }
  bool was_removed() const { return call_ == nullptr; }

 private:
  using Call = std::function<void(StateHookScope& scope)>;
  std::shared_ptr<Call> call_;
};

/// Removes a hook. Destroying the handle does not.
class StateHookHandle {
 public:
  explicit StateHookHandle(std::weak_ptr<StateHook> hook) : hook_(std::move(hook)) {}

  void remove() {
    if (const auto hook = hook_.lock()) hook->reset();
  }

 private:
  std::weak_ptr<StateHook> hook_;
};

}  // namespace hortator
