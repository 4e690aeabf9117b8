#include <c10/core/GradMode.h>

#include <exception>
#include <hortator/accelerator.hpp>
#include <span>
#include <utility>

#include "accelerator/state/divided_state.hpp"
#include "accelerator/training/training.hpp"
#include "paging/interception/interception.hpp"
#include "paging/interception/storage_state.hpp"

namespace hortator {
namespace {

// Copies, since training continues to change the memory.
at::Tensor in_host_memory(const at::Tensor& tensor) {
  return tensor.detach().to(at::kCPU, /*non_blocking=*/false, /*copy=*/true);
}

/// Keeps a parameter present, with exact values. @collective if it is sharded
class Present {
 public:
  explicit Present(const at::Tensor& parameter) : hold_(std::span(&parameter, 1), paging::Access::read_exact) {}

 private:
  paging::Hold hold_;
};

/// Brings in a parameter for another rank to read. @collective if it is sharded
void bring(const at::Tensor& parameter) { const Present present(parameter); }

/// A copy of a parameter, with exact values. @collective if it is sharded
at::Tensor exact_copy(const at::Tensor& parameter) {
  const Present present(parameter);
  auto memory = parameter.detach();
  paging::remove_key(memory);  // so that it is one use of the parameter, as on the ranks that only bring it in
  return in_host_memory(memory);
}

/// Brings in one parameter after the other. @collective
void bring_all(const torch::nn::Module& module) {
  for (const auto& parameter : module.parameters()) bring(parameter);
}

/// The division of a model whose whole parameters are requested; null if each rank has them.
const parallel::DividedModule* division_of(const step::ModelCore& core, const StateDictOptions& options) {
  return core.is_lent() || options.sharded ? nullptr : core.divided();
}

/// Whether ranks wait for each other in state_of().
bool joins_parts(const step::ModelCore& core, const StateDictOptions& options) {
  const bool is_sharded = core.sharded() != nullptr && core.sharded()->is_any_sharded();
  return division_of(core, options) != nullptr || (is_sharded && !options.sharded);
}

/// The state, empty unless this rank keeps it. @collective where parts are joined
StateDict state_of(const step::ModelCore& core, const StateDictOptions& options, bool keeps) {
  StateDict state;
  const auto* divided = division_of(core, options);
  const auto* sharded = core.sharded();
  if (!keeps && divided == nullptr) {
    if (sharded != nullptr && sharded->is_any_sharded()) bring_all(core.module());
    return state;
  }
  for (const auto& item : core.module().named_parameters()) {
    if (parallel::is_of_other_stage(item.value())) continue;
    if (const auto* one = divided != nullptr ? divided->find(item.value()) : nullptr) {
      const auto whole = accelerator::joined(accelerator::unjoined(item.key(), core, *one));
      if (keeps) state.put(item.key(), in_host_memory(whole));
    } else if (keeps) {
      const auto found =
          sharded != nullptr && options.sharded ? sharded->find(item.value()) : parallel::FlatParameter();
      state.put(item.key(), exact_copy(found ? found.published_slice() : item.value()));
    } else {
      bring(item.value());
    }
  }
  if (!keeps) return state;
  for (const auto& item : core.module().named_buffers()) state.put(item.key(), in_host_memory(item.value()));
  return state;
}

}  // namespace

SummonedParameters::SummonedParameters(const ModelBase& model, const SummonOptions& options)
    : model_(model), options_(options), exceptions_(std::uncaught_exceptions()) {
  model.core().check_alive();
  model.core().lend_parameters();
}

SummonedParameters::~SummonedParameters() noexcept(false) {
  // After an exception the other ranks may not be here to get what was written.
  const bool failed = std::uncaught_exceptions() > exceptions_;
  model_.core().take_back_parameters(options_.writeback && !failed);
}

StateDict Accelerator::get_state_dict(const ModelBase& model, const StateDictOptions& options) const {
  const auto& core = model.core();
  core.check_alive();
  const bool keeps = options.sharded || is_main_process();
  if (core.staged() != nullptr && !options.sharded) {
    const step::WholeParameters whole(&model.core());
    return state_of(core, options, keeps);
  }
  if (!joins_parts(core, options)) return state_of(core, options, keeps);
  StateDict state;
  training_->exchange_together([&] { state = state_of(core, options, keeps); });
  return state;
}

}  // namespace hortator
