#include "accelerator/state/state_hooks.hpp"

namespace hortator::accelerator {

void call(const StateHooks& hooks, const std::filesystem::path& folder) {
  for (const auto& hook : hooks) {
    if (*hook) (*hook)(folder);
  }
}

}  // namespace hortator::accelerator
