#include <algorithm>
#include <exception>
#include <hortator/accelerator.hpp>
#include <hortator/error.hpp>
#include <string>
#include <utility>
#include <vector>

#include "accelerator/state/whole_parameter.hpp"
#include "accelerator/training/training.hpp"
#include "core/text/text.hpp"
#include "mpi/agree.hpp"
#include "parallel/pipeline/staged_module.hpp"
#include "parallel/zero/parameter_names.hpp"

namespace hortator {
namespace {

using accelerator::bring;
using accelerator::exact_copy;
using accelerator::whole_copy;

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
    if (options.sharded) {
      const auto found = sharded != nullptr ? sharded->find(item.value()) : parallel::FlatParameter();
      state.put(item.key(), exact_copy(found ? found.published_slice() : item.value()));
    } else if (const auto whole = whole_copy(core, item.key(), item.value(), keeps); keeps) {
      state.put(item.key(), whole);
    }
  }
  if (!keeps) return state;
  for (const auto& item : core.module().named_buffers()) state.put(item.key(), exact_copy(item.value()));
  return state;
}

/// Each parameter once that is named, or in a module that is; all without names.
std::vector<at::Tensor> chosen(const torch::nn::Module& module, const std::vector<std::string>& names) {
  std::vector<at::Tensor> tensors;
  const auto all = module.named_parameters();
  parallel::require_known("summon_full_parameters", names, all.keys());
  for (const auto& item : all) {
    const auto is_same = [&](const auto& one) { return one.is_same(item.value()); };
    const bool is_chosen = names.empty() || parallel::is_among(names, item.key());
    if (is_chosen && std::ranges::none_of(tensors, is_same)) tensors.push_back(item.value());
  }
  return tensors;
}

void check_modifier(const SummonOptions& options, int ranks) {
  const int rank = options.modifier_rank.value_or(0);
  if (rank >= 0 && rank < ranks) return;
  throw UsageError({.what = text::concat("summon_full_parameters: modifier_rank is ", rank),
                    .hint = text::concat("name a process from 0 to ", ranks - 1)});
}

std::string text_of(const SummonOptions& options) {
  return text::concat(options.writeback, ' ', options.modifier_rank.value_or(-1), ' ', text::join(options.parameters));
}

}  // namespace

SummonedParameters::SummonedParameters(const ModelBase& model, SummonOptions options)
    : model_(model), options_(std::move(options)), exceptions_(std::uncaught_exceptions()) {
  auto& core = model.core();
  core.check_alive();
  if (core.sharded() != nullptr) core.require_equal("summon_full_parameters()");
  mpi::all_or_none_alike(core.all_ranks(), "the options of summon_full_parameters()", [&] {
    check_modifier(options_, core.all_ranks().size());
    chosen_ = chosen(core.module(), options_.parameters);
    return text_of(options_);
  });
  if (options_.parameters.empty()) {
    core.lend_parameters();
    return;
  }
  core.lend_parameters([this](const at::Tensor& parameter) {
    return std::ranges::any_of(chosen_, [&](const auto& one) { return one.is_same(parameter); });
  });
}

SummonedParameters::~SummonedParameters() noexcept(false) {
  // After an exception the other ranks may not be here to get what was written.
  const bool failed = std::uncaught_exceptions() > exceptions_;
  if (options_.modifier_rank && options_.writeback && !failed)
    model_.core().share_parameters(chosen_, *options_.modifier_rank);
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
  core.require_equal("get_state_dict()");
  StateDict state;
  training_->exchange_together([&] { state = state_of(core, options, keeps); });
  return state;
}

}  // namespace hortator
