#include <algorithm>
#include <optional>

#include "machine/memory/recycling_allocator.hpp"
#include "mpi/agree.hpp"
#include "paging/deferred/recording.hpp"
#include "paging/interception/claims.hpp"
#include "parallel/data_parallel/replicate.hpp"
#include "parallel/experts/divided_experts.hpp"
#include "parallel/zero/sharding.hpp"
#include "step/model_core.hpp"

namespace hortator::step {
namespace {

// Tied parameters have several names in the module, and one entry here.
std::vector<parallel::NamedParameter> distinct_parameters(const torch::nn::Module& module) {
  std::vector<parallel::NamedParameter> parameters;
  TensorSet seen;
  for (const auto& item : module.named_parameters()) {
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
  if (parallel.sharding != nullptr && parallel.sharding->scatters_gradients())
    std::erase_if(parameters, [](const auto& one) { return one.tensor.requires_grad(); });
  return parameters;
}

// Sizes of flat arrays. A rank holds about three arrays of gradients beside its slices: one that waits for its last
// gradient, and two in transfer. At stage 3 it holds two arrays of parameters more, so that arrays are smaller there.
parallel::ShardLimits array_limits(const parallel::DataParallel& parallel,
                                   const std::vector<parallel::NamedParameter>& parameters) {
  const std::int64_t arrays_per_model = parallel.sharding->shards_parameters ? 64 : 32;
  const auto limits = parallel::bucket_limits(parallel.options);
  std::int64_t total = 0;
  for (const auto& parameter : parameters) total += static_cast<std::int64_t>(parameter.tensor.nbytes());
  const auto max_bytes = std::max(limits.first_bytes, total / arrays_per_model);
  return {.first_bytes = limits.first_bytes, .bytes = std::min(limits.bytes, max_bytes)};
}

// A sharded or divided model is constructed later, in divide() and flatten(), so that no rank has all of it in memory
// at once.
parallel::DeferredParameters unmade(const parallel::DataParallel& parallel, bool learns) {
  const bool later = parallel.tensor != nullptr || (learns && parallel.sharding != nullptr);
  return later ? parallel::DeferredParameters::leave : parallel::DeferredParameters::make;
}

// The device through which replicate() moves paged parameters one after the other; nothing if they are on it.
std::optional<c10::Device> passed_through(const parallel::DataParallel& parallel, bool learns) {
  const bool in_turn = learns && parallel.sharding != nullptr && parallel.sharding->pages_parameters();
  return in_turn ? std::optional(parallel.device) : std::nullopt;
}

// Constructs a parameter, if that was deferred, with rank 0's values. @collective
void make_values(const at::Tensor& parameter, const parallel::DataParallel& parallel) {
  if (!paging::awaits_construction(parameter)) return;
  if (const auto former = paging::claim_of(parameter)) former.provider->hand_over(former.number, paging::Content::keep);
  parallel::broadcast_through(parallel.device, parameter, parallel.first_weights(), 0);
}

// Null unless the module has experts that are divided. @collective
std::unique_ptr<parallel::DividedModule> divide_experts(torch::nn::Module& module,
                                                        const parallel::DataParallel& parallel, bool learns) {
  std::unique_ptr<parallel::DividedModule> divided;
  mpi::all_or_none(parallel.first_weights_host(), [&] {
    if (learns || parallel::has_experts(module)) divided = parallel::divide_experts(module, parallel.experts);
  });
  return divided;
}

// Null unless the plan divides a parameter. All ranks have the same weights. @collective
std::unique_ptr<parallel::DividedModule> divide(torch::nn::Module& module, const parallel::DataParallel& parallel,
                                                bool learns) {
  if (parallel.experts != nullptr) return divide_experts(module, parallel, learns);
  if (parallel.tensor == nullptr) return nullptr;
  TensorPlan plan;
  mpi::all_or_none(parallel.first_weights_host(), [&] {
    plan = parallel.plan->empty() ? parallel::plan_of(module) : *parallel.plan;
    if (parallel.sequence) plan.push_back({.pattern = "*", .division = TensorDivision::sequence});
    parallel::DividedModule::check(module, plan, parallel.tensor->size());
  });
  const machine::RecyclingAllocator blocks(0);  // whole parameters leave no holes between the parts
  auto divided = std::make_unique<parallel::DividedModule>(
      module, plan, parallel.tensor, [&](const at::Tensor& parameter) { make_values(parameter, parallel); });
  return divided->parameters().empty() ? nullptr : std::move(divided);
}

// Null unless sharded. Parameters whose construction was deferred are constructed here, and get rank 0's values.
// @collective
std::unique_ptr<parallel::FlatParameters> flatten(const parallel::DataParallel& parallel,
                                                  const std::vector<parallel::NamedParameter>& parameters) {
  if (parallel.sharding == nullptr) return nullptr;
  const auto& sharding = *parallel.sharding;
  std::vector<parallel::FlatParameters::Parameter> all;
  TensorSet deferred;
  for (const auto& [name, tensor] : parameters) {
    all.push_back({.name = name, .tensor = tensor});
    if (paging::awaits_construction(tensor)) deferred.insert(tensor.unsafeGetTensorImpl());
  }
  const auto settle = [&](const at::Tensor& parameter) {
    if (deferred.contains(parameter.unsafeGetTensorImpl()))
      parallel::broadcast_through(parallel.device, parameter, parallel.first_weights(), 0);
  };
  return std::make_unique<parallel::FlatParameters>(
      sharding.group, std::move(all), array_limits(parallel, parameters), sharding.masters,
      parallel::ParameterPlacement{.parameters = sharding.parameters,
                                   .masters = sharding.moments,
                                   .keep_resident = sharding.keep_resident,
                                   .sharded = sharding.shards_parameters,
                                   .first_rank = sharding.first_rank,
                                   .rank_stride = sharding.rank_stride,
                                   .host = sharding.group_host,
                                   .casts = parallel.is_mixed && sharding.casts_gathers,
                                   .gathers_ahead = sharding.gathers_ahead},
      parallel::RankCoordination{.all_or_none = [&](const auto& work) { mpi::all_or_none(parallel.host, work); },
                                 .settle = settle});
}

// Null unless gradients are sharded. Construction can fail on this rank only (no memory, or no space on the disk for
// gradients). The other ranks may then not join a collective, so the parameters are released without them.
std::unique_ptr<parallel::GradientScatter> make_scatter(parallel::FlatParameters* flat,
                                                        const parallel::DataParallel& parallel,
                                                        const parallel::GradientReducer& reducer) {
  if (flat == nullptr || !parallel.sharding->scatters_gradients()) return nullptr;
  try {
    return std::make_unique<parallel::GradientScatter>(*flat, parallel, [&reducer] { return reducer.is_paused(); });
  } catch (...) {
    flat->release(parallel::FlatParameters::ReleaseMode::local);
    throw;
  }
}

}  // namespace

std::shared_ptr<ModelCore> ModelCore::prepare(torch::nn::Module& module, std::string name,
                                              std::shared_ptr<const AcceleratorSession> session,
                                              const parallel::DataParallel& parallel, const TensorSet& taken,
                                              bool learns) {
  parallel::replicate(module, parallel.first_weights(), parallel.first_weights_host(), unmade(parallel, learns),
                      passed_through(parallel, learns));
  auto divided = divide(module, parallel, learns);
  if (learns) parallel::count_tokens_over(module, parallel.counted);
  const parallel::PartsOnly each_rank_has;
  parallel::BufferBroadcast buffers(buffers_of(module), parallel.communicator);
  auto parameters = distinct_parameters(module);
  auto untaken = without(taken, parameters);
  auto own = learning(untaken);
  auto flat = learns ? flatten(parallel, untaken) : nullptr;
  auto averaged = learns ? to_average(parallel, std::move(untaken)) : std::vector<parallel::NamedParameter>();
  auto reducer = std::make_unique<parallel::GradientReducer>(std::move(averaged), parallel);
  auto scatter = make_scatter(flat.get(), parallel, *reducer);
  return std::make_shared<ModelCore>(Components{.module = module,
                                                .name = std::move(name),
                                                .session = std::move(session),
                                                .parallel = parallel,
                                                .buffers = std::move(buffers),
                                                .parameters = std::move(parameters),
                                                .own = std::move(own),
                                                .learns = learns,
                                                .divided = std::move(divided),
                                                .flat = std::move(flat),
                                                .reducer = std::move(reducer),
                                                .scatter = std::move(scatter)});
}

}  // namespace hortator::step
