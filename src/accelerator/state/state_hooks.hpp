#pragma once

#include <hortator/training/state_hook.hpp>
#include <memory>
#include <vector>

namespace hortator::accelerator {

/// In the order of registration. One that was taken away is empty.
using StateHooks = std::vector<std::shared_ptr<StateHook>>;

void call(const StateHooks& hooks, const std::filesystem::path& folder);

}  // namespace hortator::accelerator
