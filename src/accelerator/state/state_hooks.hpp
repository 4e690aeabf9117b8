#pragma once

#include <hortator/training/state_hook.hpp>
#include <memory>
#include <vector>

namespace hortator::accelerator {

/// In the order of registration. A hook that was removed is empty.
using StateHooks = std::vector<std::shared_ptr<StateHook>>;

/// Calls each hook with the checkpoint's folder.
void call(const StateHooks& hooks, const std::filesystem::path& folder);

}  // namespace hortator::accelerator
