#include <algorithm>
#include <functional>
#include <optional>

#include "machine/memory/recycling_allocator.hpp"
#include "mpi/agree.hpp"
#include "paging/deferred/construction_scope.hpp"
#include "paging/deferred/late_values.hpp"
#include "paging/deferred/recording.hpp"
#include "parallel/data_parallel/replicate.hpp"
#include "parallel/experts/divided_experts.hpp"
#include "parallel/pipeline/stage_ranks.hpp"
#include "parallel/pipeline/staged_module.hpp"
#include "parallel/tensor/divided_tensor.hpp"
#include "parallel/zero/parameter_names.hpp"
#include "parallel/zero/sharding.hpp"
#include "step/model/model_core.hpp"

namespace hortator::step {
namespace {

// Tied parameters have several names in the module, and one entry here. Those of other stages are left out.
std::vector<parallel::NamedParameter> distinct_parameters(const torch::nn::Module& module) {
  std::vector<parallel::NamedParameter> parameters;
  TensorSet seen;
  for (const auto& item : module.named_parameters()) {
    if (parallel::is_of_other_stage(item.value())) continue;
    if (seen.insert(item.value().unsafeGetTensorImpl()).second)
      parameters.push_back({.name = item.key(), .tensor = item.value()});
  }
  return parameters;
}

std::vector<parallel::NamedParameter> without(const TensorSet& taken,
                                              std::vector<parallel::NamedParameter> parameters) {
  std::erase_if(parameters, [&](const auto& one) { return taken.contains(one.tensor.unsafeGetTensorImpl()); });
  return parameters;
}

std::vector<at::Tensor> learning(const std::vector<parallel::NamedParameter>& parameters) {
  std::vector<at::Tensor> learning;
  for (const auto& parameter : parameters) {
    if (parameter.tensor.requires_grad()) learning.push_back(parameter.tensor);
  }
  return learning;
}

// Parameters for the reducer. Where gradients are sharded, those that learn belong to GradientScatter; frozen ones stay
// here, so that the reducer notices when one is unfrozen.
std::vector<parallel::NamedParameter> to_average(const parallel::DataParallel& parallel,
                                                 std::vector<parallel::NamedParameter> parameters) {
  if (parallel.sharding == nullptr || !parallel.sharding->scatters_gradients()) return parameters;
  std::erase_if(parameters, [&](const auto& one) {
    return one.tensor.requires_grad() && !parallel::is_among(parallel.sharding->ignored, one.name);
  });
  return parameters;
}

// Where gradients are sharded, those of ignored parameters are averaged in a pass of their own.
parallel::DataParallel binding_of_reducer(const parallel::DataParallel& parallel) {
  auto binding = parallel;
  if (parallel.sharding != nullptr && parallel.sharding->scatters_gradients())
    binding.common_pass = parallel.common_pass_of_ignored;
  return binding;
}

// Parameters that are not sharded, though others are, are on the device. @collective where they are constructed
void place_ignored(const std::vector<parallel::NamedParameter>& parameters, const parallel::DataParallel& parallel,
                   const std::function<void(const at::Tensor&)>& settle) {
  for (const auto& [name, tensor] : parameters) {
    settle(tensor);
    if (tensor.device() != parallel.device) tensor.set_data(tensor.detach().to(parallel.device));
  }
}

// Sizes of flat arrays. A rank holds about three arrays of gradients beside its slices: one that waits for its last
// gradient, and two in transfer. At stage 3 it holds two arrays of parameters more, so that arrays are smaller there.
parallel::ShardLimits array_limits(const parallel::DataParallel& parallel,
                                   const std::vector<parallel::FlatParameters::Parameter>& parameters) {
  const std::int64_t arrays_per_model = parallel.sharding->shards_parameters ? 64 : 32;
  const auto limits = parallel::bucket_limits(parallel.options);
  std::int64_t total = 0;
  for (const auto& parameter : parameters) total += static_cast<std::int64_t>(parameter.tensor.nbytes());
  const auto max_bytes = std::max(limits.first_bytes, total / arrays_per_model);
  return {.first_bytes = limits.first_bytes, .bytes = std::min(limits.bytes, max_bytes)};
}

// Evaluation models without experts stay as they are.
bool divides_experts(torch::nn::Module& module, const parallel::DataParallel& parallel, bool learns) {
  return parallel.experts != nullptr && (learns || parallel::has_experts(module));
}

// Whether ranks have parts of the model, in which it is constructed later: in divide() and shard(), so that no rank has
// all of it in memory at once.
bool is_in_parts(torch::nn::Module& module, const parallel::DataParallel& parallel, bool learns) {
  return parallel.tensor != nullptr || divides_experts(module, parallel, learns) ||
         (learns && parallel.sharding != nullptr);
}

// The device through which replicate() moves paged parameters one after the other; nothing if they are on it.
std::optional<c10::Device> passed_through(const parallel::DataParallel& parallel, bool learns) {
  const bool in_turn = learns && parallel.sharding != nullptr && parallel.sharding->pages_parameters();
  return in_turn ? std::optional(parallel.device) : std::nullopt;
}

// Constructs a parameter, if that was deferred, with rank 0's values. Only rank 0 reads a checkpoint for this.
// @collective
void make_values(const at::Tensor& parameter, const parallel::DataParallel& parallel) {
  if (!paging::awaits_construction(parameter)) return;
  const bool is_source = parallel.first_weights().rank() == 0;
  mpi::all_or_none(parallel.first_weights_host(),
                   [&] { is_source ? paging::settle(parameter) : paging::settle_to_receive(parameter); });
  parallel::broadcast_through(parallel.device, parameter, parallel.first_weights(), 0);
}

// Constructs a model that is whole on each rank. A rank alone constructs what an operator reads, when it does.
// @collective
void make_all_values(const torch::nn::Module& module, const parallel::DataParallel& parallel) {
  if (parallel.first_weights().size() == 1) return;
  for (const auto& parameter : module.parameters()) make_values(parameter, parallel);
}

// Null unless ranks have different layers. @collective
std::unique_ptr<parallel::StagedModule> stage(torch::nn::Module& module, const parallel::DataParallel& parallel) {
  if (parallel.stages == nullptr) return nullptr;
  return std::make_unique<parallel::StagedModule>(module, parallel.stages->shape, parallel.stages->ranks);
}

// Constructs one parameter after the other, and drops those of other stages, so that no rank has more than its stages
// and one parameter. @collective
void make_stages(const torch::nn::Module& module, const parallel::DataParallel& parallel,
                 parallel::StagedModule& staged) {
  for (const auto& parameter : module.parameters()) {
    make_values(parameter, parallel);
    staged.drop(parameter);
  }
}

// Constructs parameters before they are divided. Those that are sharded as well are constructed and divided when they
// move into the arrays: in flatten().
parallel::DividedModule::Settle settling(const parallel::DataParallel& parallel, bool learns,
                                         parallel::StagedModule* staged) {
  const bool is_sharded = learns && parallel.sharding != nullptr && staged == nullptr;
  return [&parallel, is_sharded, staged](const auto& parameter) {
    if (is_sharded && paging::awaits_construction(parameter)) return false;
    make_values(parameter, parallel);
    if (staged != nullptr) staged->drop(parameter);
    return true;
  };
}

// Null unless the module has experts that are divided. @collective
std::unique_ptr<parallel::DividedModule> divide_experts(torch::nn::Module& module,
                                                        const parallel::DataParallel& parallel, bool learns) {
  if (!divides_experts(module, parallel, learns)) return nullptr;
  mpi::all_or_none(parallel.first_weights_host(), [&] { parallel::check_experts(module, parallel.experts->size()); });
  const machine::RecyclingAllocator blocks(0);  // whole parameters leave no holes between the parts
  return parallel::divide_experts(module, parallel.experts, settling(parallel, learns, nullptr));
}

// Null unless the plan divides a parameter. All ranks have the same weights. @collective
std::unique_ptr<parallel::DividedModule> divide(torch::nn::Module& module, const parallel::DataParallel& parallel,
                                                bool learns, parallel::StagedModule* staged) {
  if (parallel.experts != nullptr) return divide_experts(module, parallel, learns);
  if (parallel.tensor == nullptr) return nullptr;
  TensorPlan plan;
  mpi::all_or_none(parallel.first_weights_host(), [&] {
    plan = parallel.plan->empty() ? parallel::plan_of(module) : *parallel.plan;
    if (parallel.sequence) plan.push_back({.pattern = "*", .division = TensorDivision::sequence});
    parallel::DividedModule::check(module, plan, parallel.tensor->size());
  });
  const machine::RecyclingAllocator blocks(0);  // whole parameters leave no holes between the parts
  auto divided =
      std::make_unique<parallel::DividedModule>(module, plan, parallel.tensor, settling(parallel, learns, staged));
  return divided->parameters().empty() ? nullptr : std::move(divided);
}

using FlatList = std::vector<parallel::FlatParameters::Parameter>;

// Constructs a parameter, or this rank's part of it, if that was deferred. `divided` may be null. Called on all ranks.
std::function<void(const at::Tensor&)> settling_of_parts(const parallel::DataParallel& parallel,
                                                         parallel::DividedModule* divided) {
  return [&parallel, divided](const at::Tensor& parameter) {
    if (divided != nullptr && divided->awaits_part(parameter))
      divided->make_part(parameter, [&](const auto& whole) { make_values(whole, parallel); });
    make_values(parameter, parallel);
  };
}

// Parameters in the arrays of one group of ranks. Those whose construction was deferred are constructed here, one after
// the other, and get rank 0's values. `divided` may be null. @collective
std::unique_ptr<parallel::FlatParameters> flatten(FlatList parameters, const parallel::DataParallel& parallel,
                                                  const parallel::ShardRanks& ranks, parallel::DividedModule* divided) {
  const auto& sharding = *parallel.sharding;
  const auto settle = settling_of_parts(parallel, divided);
  const auto limits = array_limits(parallel, parameters);
  return std::make_unique<parallel::FlatParameters>(
      ranks.group, std::move(parameters), limits, sharding.masters,
      parallel::ParameterPlacement{.parameters = sharding.parameters,
                                   .masters = sharding.moments,
                                   .keep_resident = sharding.keep_resident,
                                   .sharded = sharding.shards_parameters && ranks.group.size() > 1,
                                   .first_rank = ranks.first_rank,
                                   .rank_stride = ranks.rank_stride,
                                   .host = ranks.host,
                                   .casts = parallel.is_mixed && sharding.casts_gathers,
                                   .int8 = sharding.int8_gathers,
                                   .gathers_ahead = sharding.gathers_ahead},
      parallel::RankCoordination{.all_or_none = [&](const auto& work) { mpi::all_or_none(parallel.host, work); },
                                 .settle = settle});
}

// Null unless sharded. @collective
std::unique_ptr<parallel::ShardedModel> shard(const parallel::DataParallel& parallel,
                                              const std::vector<parallel::NamedParameter>& parameters,
                                              parallel::DividedModule* divided) {
  if (parallel.sharding == nullptr) return nullptr;
  const auto& sharding = *parallel.sharding;
  FlatList all;
  std::vector<parallel::NamedParameter> ignored;
  std::vector<std::string> names;
  for (const auto& [name, tensor] : parameters) {
    names.push_back(name);
    if (parallel::is_among(sharding.ignored, name)) {
      ignored.push_back({.name = name, .tensor = tensor});
    } else {
      all.push_back({.name = name, .tensor = tensor});
    }
  }
  parallel::require_known("zero.keep_resident", sharding.keep_resident, names);
  parallel::require_known("zero.ignore", sharding.ignored, names);
  place_ignored(ignored, parallel, settling_of_parts(parallel, divided));
  const auto is_common = [&](const auto& one) { return !sharding.experts || !parallel::is_divided(one.tensor); };
  const auto first = std::stable_partition(all.begin(), all.end(), is_common);
  FlatList experts(first, all.end());
  all.erase(first, all.end());
  auto model = std::make_unique<parallel::ShardedModel>();
  try {
    model->add(flatten(std::move(all), parallel, sharding.ranks, divided), sharding.ranks);
    if (!experts.empty())
      model->add(flatten(std::move(experts), parallel, *sharding.experts, divided), *sharding.experts);
  } catch (...) {  // the other ranks may not get here
    model->release(parallel::FlatParameters::ReleaseMode::local);
    throw;
  }
  return model;
}

// Null unless gradients are sharded. Construction can fail on this rank only (no memory, or no space on the disk for
// gradients). The other ranks may then not join a collective, so the parameters are released without them. @collective
std::unique_ptr<parallel::GradientScatter> make_scatter(parallel::ShardedModel* sharded,
                                                        const parallel::DataParallel& parallel,
                                                        const parallel::GradientReducer& reducer) {
  if (sharded == nullptr || !parallel.sharding->scatters_gradients()) return nullptr;
  try {
    return std::make_unique<parallel::GradientScatter>(*sharded, parallel, [&reducer] { return reducer.is_paused(); });
  } catch (...) {
    sharded->release(parallel::FlatParameters::ReleaseMode::local);
    throw;
  }
}

}  // namespace

std::shared_ptr<ModelCore> ModelCore::prepare(torch::nn::Module& module, std::string name,
                                              std::shared_ptr<const AcceleratorSession> session,
                                              const parallel::DataParallel& parallel, const TensorSet& taken,
                                              ModelWork work) {
  const bool learns = work == ModelWork::training;
  const bool shards = work != ModelWork::evaluation;
  parallel::replicate(module, parallel.first_weights(), parallel.first_weights_host(),
                      passed_through(parallel, shards));
  auto staged = stage(module, parallel);
  if (staged && parallel.tensor == nullptr) make_stages(module, parallel, *staged);
  if (!is_in_parts(module, parallel, shards)) make_all_values(module, parallel);
  auto divided = divide(module, parallel, shards, staged.get());
  if (learns) parallel::count_tokens_over(module, parallel.counted);
  const parallel::PartsOnly each_rank_has;
  parallel::BufferBroadcast buffers(buffers_of(module), parallel.communicator);
  auto parameters = distinct_parameters(module);
  auto untaken = without(taken, parameters);
  auto own = learning(untaken);
  auto sharded = shards ? shard(parallel, untaken, divided.get()) : nullptr;
  auto averaged = learns ? to_average(parallel, std::move(untaken)) : std::vector<parallel::NamedParameter>();
  auto reducer = std::make_unique<parallel::GradientReducer>(std::move(averaged), binding_of_reducer(parallel));
  auto scatter = make_scatter(learns ? sharded.get() : nullptr, parallel, *reducer);
  return std::make_shared<ModelCore>(Components{.module = module,
                                                .name = std::move(name),
                                                .session = std::move(session),
                                                .parallel = parallel,
                                                .buffers = std::move(buffers),
                                                .parameters = std::move(parameters),
                                                .own = std::move(own),
                                                .learns = learns,
                                                .staged = std::move(staged),
                                                .divided = std::move(divided),
                                                .sharded = std::move(sharded),
                                                .reducer = std::move(reducer),
                                                .scatter = std::move(scatter)});
}

}  // namespace hortator::step
