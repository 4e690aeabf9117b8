#pragma once

#include <hortator/training/state_hook.hpp>
#include <memory>
#include <set>
#include <vector>

#include "mpi/communicator.hpp"
#include "step/model/model_core.hpp"

namespace hortator::accelerator {

/// In the order of registration. A hook that was removed does nothing, and is erased when the next one is added.
using StateHooks = std::vector<std::shared_ptr<StateHook>>;

StateHookHandle add(StateHooks& hooks, StateHook hook);

/// Where a checkpoint is, and where files of the program belong.
struct HookFolders {
  std::filesystem::path checkpoint, own;
};

/// Calls each hook with the folders and the models. Returns the models that are left out. If a hook fails on one rank,
/// or leaves out other models there, all throw. @collective
std::set<std::size_t> call(const StateHooks& hooks, const HookFolders& folders,
                           const std::vector<std::shared_ptr<step::ModelCore>>& models, const mpi::Communicator& host);

}  // namespace hortator::accelerator
