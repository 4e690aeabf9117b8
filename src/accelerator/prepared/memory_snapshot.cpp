#include "accelerator/prepared/memory_snapshot.hpp"

#include <c10/core/GradMode.h>

#include <algorithm>

#include "mpi/agree.hpp"
#include "parallel/tensor/divided_tensor.hpp"
#include "step/moments/optimizer_state.hpp"

namespace hortator::accelerator {
namespace {

at::Tensor host_copy(const at::Tensor& tensor) {
  return tensor.detach().to(at::kCPU, tensor.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
}

StateDict copy_of(const StateDict& state) {
  StateDict copy;
  for (const auto& [name, value] : state.values()) {
    if (const auto* const tensor = std::get_if<at::Tensor>(&value)) {
      copy.put(name, host_copy(*tensor));
    } else {
      std::visit([&](const auto& held) { copy.put(name, held); }, value);
    }
  }
  return copy;
}

// What this rank has of the model's tensors, each once. References to slices are counted (FlatParameters::is_kept):
// keep none.
std::vector<at::Tensor> held_tensors(const step::ModelCore& model) {
  std::vector<at::Tensor> held = model.distinct_buffers();
  for (const auto& [name, parameter] : model.parameters()) {
    const auto found = model.sharded() != nullptr ? model.sharded()->find(parameter) : parallel::FlatParameter();
    held.push_back(found ? found.slice() : parameter);
  }
  return held;
}

}  // namespace

MemorySnapshot::MemorySnapshot(const Prepared& prepared) {
  const at::NoGradGuard no_grad;
  const parallel::PartsOnly each_rank_has;
  for (const auto& model : prepared.models()) {
    auto& copies = models_.emplace_back();
    for (const auto& held : held_tensors(*model)) copies.push_back(host_copy(held));
  }
  const auto names = prepared.stepped_names();
  for (const auto& optimizer : prepared.optimizers()) {
    optimizers_.push_back(
        {.optimizer = optimizer, .state = copy_of(step::save_optimizer(optimizer->optimizer(), names))});
  }
  for (const auto& schedule : prepared.schedules()) schedules_.push_back(schedule.state());
  for (const auto& object : prepared.objects()) {
    StateDict state;
    object.save(state);
    objects_.push_back(copy_of(state));
  }
  for (const auto& part : prepared.parts()) parts_.push_back(part.remember ? part.remember() : std::function<void()>());
}

bool MemorySnapshot::has_all(const Prepared& prepared) const {
  const auto is_it = [](const OptimizerCopy& copy, const auto& optimizer) {
    return copy.optimizer.lock() == optimizer;
  };
  return models_.size() == prepared.models().size() && schedules_.size() == prepared.schedules().size() &&
         objects_.size() == prepared.objects().size() && parts_.size() == prepared.parts().size() &&
         std::ranges::equal(optimizers_, prepared.optimizers(), is_it);
}

// An optimizer may take the tensors that it gets.
void MemorySnapshot::restore(Prepared& prepared, const mpi::Communicator& host) const {
  mpi::all_or_none(host, [&] {
    const at::NoGradGuard no_grad;
    const parallel::PartsOnly each_rank_has;
    const auto names = prepared.stepped_names();
    for (const auto& [optimizer, state] : optimizers_) {
      const auto present = optimizer.lock();
      if (std::ranges::find(prepared.optimizers(), present) != prepared.optimizers().end())
        present->load(names, copy_of(state));
    }
    for (std::size_t i = 0; i < models_.size(); ++i) {
      auto held = held_tensors(*prepared.models()[i]);
      for (std::size_t k = 0; k < held.size(); ++k) held[k].copy_(models_[i][k]);
    }
    for (std::size_t i = 0; i < schedules_.size(); ++i) prepared.schedules()[i].load(schedules_[i]);
    for (std::size_t i = 0; i < objects_.size(); ++i) prepared.objects()[i].load(copy_of(objects_[i]));
    for (const auto& restore_part : parts_) {
      if (restore_part) restore_part();
    }
  });
  for (const auto& model : prepared.models()) {
    if (model->sharded() != nullptr) model->sharded()->publish_all();
  }
}

}  // namespace hortator::accelerator
