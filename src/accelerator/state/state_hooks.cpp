#include "accelerator/state/state_hooks.hpp"

#include "accelerator/training/training.hpp"

namespace hortator {
namespace {

StateHookHandle add(accelerator::StateHooks& hooks, StateHook hook) {
  return StateHookHandle(hooks.emplace_back(std::make_shared<StateHook>(std::move(hook))));
}

}  // namespace

void accelerator::call(const StateHooks& hooks, const std::filesystem::path& folder) {
  for (const auto& hook : hooks) {
    if (*hook) (*hook)(folder);
  }
}

StateHookHandle Accelerator::register_save_state_pre_hook(StateHook hook) {
  return add(training_->prepared.save_hooks(), std::move(hook));
}

StateHookHandle Accelerator::register_load_state_pre_hook(StateHook hook) {
  return add(training_->prepared.load_hooks(), std::move(hook));
}

}  // namespace hortator
