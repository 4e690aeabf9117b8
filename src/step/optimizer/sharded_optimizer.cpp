#include "step/optimizer/sharded_optimizer.hpp"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <c10/util/Type.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <functional>
#include <hortator/error.hpp>
#include <hortator/training/sliced_optimizer.hpp>
#include <typeinfo>

#include "core/text/text.hpp"
#include "mpi/agree.hpp"
#include "step/moments/moment_layout.hpp"
#include "step/moments/optimizer_fields.hpp"
#include "step/optimizer/sharded_slices.hpp"

namespace hortator::step {
namespace {

using namespace torch::optim;

template <typename... Known>
bool is_exactly_one_of(const torch::optim::Optimizer& optimizer) {
  return ((typeid(optimizer) == typeid(Known)) || ...);
}

/// Replaces each tensor of a state that is sharded over the ranks.
class SliceReplacement final : public FieldVisitor {
 public:
  using Replace = std::function<at::Tensor(const at::Tensor&, MomentLayout)>;
  explicit SliceReplacement(Replace replace) : replace_(std::move(replace)) {}
  void field(std::string_view, double&) override {}
  void field(std::string_view, std::int64_t&) override {}
  void field(std::string_view, bool&) override {}
  void field(std::string_view name, at::Tensor& value) override {
    const auto layout = moment_layout(name);
    if (value.defined() && layout != MomentLayout::whole) value = replace_(value, layout);
  }
  void field(std::string_view, std::deque<at::Tensor>&) override {}

 private:
  Replace replace_;
};

void require_known_options(const torch::optim::Optimizer& optimizer, const std::string& name) {
  for (const auto& group : optimizer.param_groups()) {
    if (make_state(group.options()) != nullptr) continue;
    throw UsageError({.what = text::concat("ZeRO cannot shard the state of the optimizer ", name),
                      .why = "its options and states are of types that Hortator does not know",
                      .hint = "derive it from hortator::NamedOptimizer, or use the options and states of an optimizer "
                              "of torch::optim"});
  }
}

}  // namespace

bool is_elementwise(const torch::optim::Optimizer& optimizer) {
  return is_exactly_one_of<AdamW, Adam, SGD, RMSprop, Adagrad>(optimizer) ||
         dynamic_cast<const ElementwiseOptimizer*>(&optimizer) != nullptr;
}

void require_shardable(const torch::optim::Optimizer& optimizer) {
  if (is_exactly_one_of<AdamW, Adam, SGD, RMSprop, Adagrad>(optimizer)) return;
  const auto name = c10::demangle(typeid(optimizer).name());
  const bool declares_it = dynamic_cast<const ElementwiseOptimizer*>(&optimizer) != nullptr ||
                           dynamic_cast<const SlicedOptimizer*>(&optimizer) != nullptr;
  if (declares_it) return require_known_options(optimizer, name);
  if (name.find("LBFGS") != std::string::npos) {
    throw UsageError({.what = text::concat("ZeRO cannot shard the optimizer ", name),
                      .why = "its step depends on all parameters together, and a rank has only a slice of each",
                      .hint = "use ZeRO stage 0, or AdamW, Adam, SGD, RMSprop or Adagrad"});
  }
  throw UsageError({.what = text::concat("ZeRO cannot shard the optimizer ", name),
                    .why = "it may look at whole parameters, or keep tensors of its own",
                    .hint = "if it steps element by element, declare that by deriving from "
                            "hortator::ElementwiseOptimizer; otherwise derive it from hortator::SlicedOptimizer, use "
                            "ZeRO stage 0, or one of torch::optim's "
                            "AdamW, Adam, SGD, RMSprop and Adagrad, or of Hortator's optimizers"});
}

ShardedOptimizer::ShardedOptimizer(torch::optim::Optimizer& optimizer, bool gradients_are_whole,
                                   const parallel::ArrayPlacement& moments, const mpi::Communicator& host)
    : optimizer_(&optimizer), gradients_are_whole_(gradients_are_whole), host_(&host) {
  require_shardable(optimizer);
  if (moments.is_offloaded()) {
    require_known_moments(optimizer);
    on_disk_.emplace(moments);
  }
  for (const auto& group : optimizer.param_groups()) {
    auto& all = groups_.emplace_back();
    for (const auto& parameter : group.params()) all.push_back({.parameter = parameter, .slice = parameter});
  }
}

void ShardedOptimizer::take_over(const parallel::ShardedModel& model) {
  for (const auto& group : model.groups()) take_over(*group.parameters);
}

void ShardedOptimizer::take_over(parallel::FlatParameters& parameters) {
  const at::NoGradGuard no_grad;
  bool found = false;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    for (std::size_t i = 0; i < groups_[g].size(); ++i) {
      auto& sharded = groups_[g][i];
      const auto number = parameters.find(sharded.parameter);
      if (sharded.flat != nullptr || !number || !parameters.is_trained(*number)) continue;
      sharded.flat = &parameters;
      sharded.number = *number;
      sharded.slice = parameters.slice(*number);
      parameters.note_keeper(*number);
      cut_state(sharded);
      optimizer_->param_groups()[g].params()[i] = sharded.slice;
      found = true;
    }
  }
  const bool is_known = std::find(models_.begin(), models_.end(), &parameters) != models_.end();
  if (found && !is_known) models_.push_back(&parameters);
}

// The user may have added parameters by add_param_group() or params().
void ShardedOptimizer::take_over_new_ones() {
  auto& groups = optimizer_->param_groups();
  bool any = false;
  groups_.resize(std::max(groups_.size(), groups.size()));
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto& present = groups[g].params();
    for (auto i = groups_[g].size(); i < present.size(); ++i, any = true)
      groups_[g].push_back({.parameter = present[i], .slice = present[i]});
  }
  if (!any) return;
  for (auto* model : std::vector(models_)) take_over(*model);
}

// Includes parameters whose slice is empty on this rank, so that all ranks have state of the same parameters.
std::vector<MomentsOnDisk::Owner> ShardedOptimizer::owners_of_moments() const {
  std::vector<MomentsOnDisk::Owner> owners;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    for (const auto& sharded : groups_[g]) {
      if (sharded.flat == nullptr) continue;
      owners.push_back(
          {.parameter = sharded.slice, .group = g, .name = sharded.flat->parameters()[sharded.number].name});
    }
  }
  return owners;
}

void ShardedOptimizer::cut_state(const ShardedParameter& sharded) {
  auto& states = optimizer_->state();
  const auto found = states.find(sharded.parameter.unsafeGetTensorImpl());
  if (found == states.end()) return;
  auto state = std::move(found->second);
  states.erase(found);
  const auto owned = sharded.flat->owned(sharded.number);
  SliceReplacement cut([&](const at::Tensor& whole, MomentLayout layout) {
    const auto mine = moment_range(layout, owned);
    const auto cut = whole.detach().reshape({-1}).narrow(0, mine.begin, mine.size());
    const auto type = layout == MomentLayout::elements ? sharded.slice.scalar_type() : cut.scalar_type();
    return cut.to(sharded.slice.device(), type, /*non_blocking=*/false, /*copy=*/true);
  });
  visit_fields(*state, cut);
  states[sharded.slice.unsafeGetTensorImpl()] = std::move(state);
}

// Broadcasts each rank's slice in turn. @collective
at::Tensor ShardedOptimizer::join_blocks(const ShardedParameter& sharded, const at::Tensor& mine) {
  auto& ranks = sharded.flat->communicator();
  auto whole = at::empty({blocks_of(sharded.flat->plan().positions[sharded.number].elements)}, mine.options());
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const auto owned = moment_range(MomentLayout::blocks, sharded.flat->plan().owned(sharded.number, rank));
    if (owned.size() == 0) continue;
    auto slice = whole.narrow(0, owned.begin, owned.size());
    if (rank == ranks.rank()) slice.copy_(mine);
    ranks.broadcast(slice, rank).wait();
  }
  return whole;
}

// @collective
void ShardedOptimizer::join_state(const ShardedParameter& sharded) {
  auto& states = optimizer_->state();
  const auto found = states.find(sharded.slice.unsafeGetTensorImpl());
  if (found == states.end()) return;
  auto state = std::move(found->second);
  states.erase(found);
  SliceReplacement join([&](const at::Tensor& mine, MomentLayout layout) {
    if (layout == MomentLayout::blocks) return join_blocks(sharded, mine).to(sharded.flat->came_from());
    const auto type = layout == MomentLayout::bytes ? at::kByte : sharded.parameter.scalar_type();
    return sharded.flat->join(sharded.number, mine).to(sharded.flat->came_from(), type);
  });
  visit_fields(*state, join);
  states[sharded.parameter.unsafeGetTensorImpl()] = std::move(state);
}

std::vector<std::size_t> ShardedOptimizer::flats_of(const parallel::FlatParameters& parameters) const {
  std::vector<std::size_t> flats;
  for (const auto& group : groups_) {
    for (const auto& sharded : group) {
      if (sharded.flat == &parameters) flats.push_back(parameters.plan().positions[sharded.number].flat);
    }
  }
  std::sort(flats.begin(), flats.end());
  flats.erase(std::unique(flats.begin(), flats.end()), flats.end());
  return flats;
}

bool ShardedOptimizer::before_step(std::optional<bool> flag) {
  const at::NoGradGuard no_grad;
  take_over_new_ones();
  // It may need a new file, and one rank's disk may have no space for it.
  if (on_disk_) mpi::all_or_none(*host_, [this] { on_disk_->keep(*optimizer_, owners_of_moments()); });
  for (auto* model : models_) model->check_untouched();
  if (!models_.empty()) flag = of_most_ranks().arrive(flag);
  lend_slices();
  if (gradients_are_whole_) cut_gradients();
  return flag.value_or(false);
}

// Ranks that share experts are among those that share other parameters.
parallel::FlatParameters& ShardedOptimizer::of_most_ranks() const {
  return **std::ranges::max_element(models_, {}, [](const auto* one) { return one->communicator().size(); });
}

// Parameters may have been added since the last step.
void ShardedOptimizer::lend_slices() {
  auto* const sliced = dynamic_cast<SlicedOptimizer*>(optimizer_);
  if (sliced == nullptr || models_.empty()) return;
  slices_ = std::make_shared<ShardedSlices>(groups_, of_most_ranks().communicator());
  sliced->use(slices_);
}

void ShardedOptimizer::cut_gradients() {
  for (const auto& group : groups_) {
    for (const auto& sharded : group) {
      if (sharded.flat == nullptr) continue;
      const auto& gradient = sharded.parameter.grad();
      auto& mine = sharded.slice.mutable_grad();
      mine.reset();
      if (!gradient.defined()) continue;
      const auto owned = sharded.flat->owned(sharded.number);
      mine = gradient.detach().reshape({-1}).narrow(0, owned.begin, owned.size()).to(sharded.slice.scalar_type());
    }
  }
}

// What others have written may throw. A SlicedOptimizer exchanges within its step, where ranks cannot agree.
void ShardedOptimizer::run_together(const std::function<void()>& step, const Abandon& abandon) const {
  if (is_exactly_one_of<AdamW, Adam, SGD, RMSprop, Adagrad>(*optimizer_)) return step();
  if (dynamic_cast<const SlicedOptimizer*>(optimizer_) == nullptr) return mpi::all_or_none(*host_, step);
  try {
    step();
  } catch (...) {
    abandon("its optimizer's step has failed");
    throw;
  }
}

void ShardedOptimizer::after_step() {
  for (auto* model : models_) model->publish(flats_of(*model));
  leave_step();
}

void ShardedOptimizer::leave_step() {
  if (!gradients_are_whole_) return;
  for (const auto& group : groups_) {
    for (const auto& sharded : group) {
      if (sharded.flat != nullptr) sharded.slice.mutable_grad().reset();
    }
  }
}

std::vector<at::Tensor> ShardedOptimizer::parameters() const {
  std::vector<at::Tensor> parameters;
  for (const auto& group : groups_) {
    for (const auto& sharded : group) parameters.push_back(sharded.parameter);
  }
  return parameters;
}

// Whether the user's optimizer, which is borrowed, still exists: its groups keep the slices alive.
bool ShardedOptimizer::is_alive() const {
  const auto is_kept = [](const ShardedParameter& sharded) {
    return sharded.flat == nullptr || sharded.flat->is_kept(sharded.number);
  };
  const auto all_kept = [&](const auto& group) { return std::all_of(group.begin(), group.end(), is_kept); };
  return !models_.empty() && std::all_of(groups_.begin(), groups_.end(), all_kept);
}

void ShardedOptimizer::give_back() {
  const at::NoGradGuard no_grad;
  if (!is_alive()) return give_back_parameters();
  for (const auto& group : groups_) {
    for (const auto& sharded : group) {
      if (sharded.flat != nullptr) join_state(sharded);
    }
  }
  give_back_parameters();
}

void ShardedOptimizer::give_back_parameters() {
  const bool alive = is_alive();
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    for (std::size_t i = 0; i < groups_[g].size(); ++i) {
      const auto& sharded = groups_[g][i];
      if (sharded.flat == nullptr) continue;
      sharded.flat->forget_keeper(sharded.number);
      if (!alive) continue;
      optimizer_->state().erase(static_cast<void*>(sharded.slice.unsafeGetTensorImpl()));
      optimizer_->param_groups()[g].params()[i] = sharded.parameter;
    }
  }
  slices_.reset();  // the user's optimizer, which may live on, then finds none
  groups_.clear();
  models_.clear();
  on_disk_.reset();
}

}  // namespace hortator::step
