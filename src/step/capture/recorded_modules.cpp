#include "step/capture/recorded_modules.hpp"

#include <algorithm>

#include "interception/storage_memory.hpp"

namespace hortator::step {
namespace {

const void* memory_of(const at::Tensor& tensor) {
  return tensor.has_storage() ? interception::memory_of(tensor.storage()) : nullptr;
}

}  // namespace

// A module that the program holds by value has no weak pointer. Its children tell its mode.
void RecordedModules::add(const torch::nn::Module& module) {
  for (const auto& tensors : {module.parameters(), module.buffers()}) {
    for (const auto& tensor : tensors) {
      if (tensor.defined()) tensors_.push_back({tensor, memory_of(tensor), tensor.requires_grad()});
    }
  }
  if (const auto itself = module.weak_from_this(); !itself.expired()) modes_.push_back({itself, module.is_training()});
  for (const auto& child : module.modules(/*include_self=*/false)) modes_.push_back({child, child->is_training()});
}

bool RecordedModules::are_unchanged() const {
  const auto is_as_recorded = [](const RecordedTensor& one) {
    return one.tensor.requires_grad() == one.learns && memory_of(one.tensor) == one.memory;
  };
  const auto has_mode = [](const RecordedMode& one) {
    const auto module = one.module.lock();
    return module == nullptr || module->is_training() == one.is_training;
  };
  return std::ranges::all_of(tensors_, is_as_recorded) && std::ranges::all_of(modes_, has_mode);
}

}  // namespace hortator::step
