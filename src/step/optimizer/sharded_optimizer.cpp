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
#include <typeinfo>

#include "core/text/text.hpp"
#include "mpi/agree.hpp"
#include "step/optimizer/optimizer_fields.hpp"

namespace hortator::step {
namespace {

using namespace torch::optim;

template <typename... Known>
bool is_exactly_one_of(const torch::optim::Optimizer& optimizer) {
  return ((typeid(optimizer) == typeid(Known)) || ...);
}

/// Each tensor of a state is replaced by another.
class Replacement final : public FieldVisitor {
 public:
  using Replace = std::function<at::Tensor(const at::Tensor&)>;
  explicit Replacement(Replace replace) : replace_(std::move(replace)) {}
  void field(std::string_view, double&) override {}
  void field(std::string_view, std::int64_t&) override {}
  void field(std::string_view, bool&) override {}
  void field(std::string_view, at::Tensor& value) override {
    if (value.defined()) value = replace_(value);
  }
  void field(std::string_view, std::deque<at::Tensor>&) override {}

 private:
  Replace replace_;
};

}  // namespace

void require_elementwise(const torch::optim::Optimizer& optimizer) {
  if (is_exactly_one_of<AdamW, Adam, SGD, RMSprop, Adagrad>(optimizer)) return;
  const auto& type = typeid(optimizer);
  const auto name = c10::demangle(type.name());
  if (name.find("LBFGS") != std::string::npos) {
    throw UsageError({.what = text::concat("ZeRO cannot shard the optimizer ", name),
                      .why = "its step depends on all parameters together, and a rank has a part of each",
                      .hint = "use ZeRO stage 0, or AdamW, Adam, SGD, RMSprop or Adagrad"});
  }
  throw UsageError({.what = text::concat("ZeRO cannot shard the optimizer ", name),
                    .why = "it may look at whole parameters, or keep tensors of its own; only torch::optim's AdamW, "
                           "Adam, SGD, RMSprop and Adagrad are known to step element by element",
                    .hint = "use ZeRO stage 0, or one of these"});
}

ShardedOptimizer::ShardedOptimizer(torch::optim::Optimizer& optimizer, bool gradients_are_whole,
                                   const parallel::ArrayPlacement& moments, const mpi::Communicator& host)
    : optimizer_(&optimizer), gradients_are_whole_(gradients_are_whole), host_(host) {
  require_elementwise(optimizer);
  if (moments.is_offloaded()) {
    require_known_moments(optimizer);
    on_disk_.emplace(moments);
  }
  for (const auto& group : optimizer.param_groups()) {
    auto& parts = groups_.emplace_back();
    for (const auto& parameter : group.params()) parts.push_back({.parameter = parameter, .slice = parameter});
  }
}

void ShardedOptimizer::take_over(parallel::FlatParameters& parameters) {
  const at::NoGradGuard no_grad;
  bool found = false;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    for (std::size_t i = 0; i < groups_[g].size(); ++i) {
      auto& part = groups_[g][i];
      const auto number = parameters.find(part.parameter);
      if (part.flat != nullptr || !number || !parameters.is_trained(*number)) continue;
      part.flat = &parameters;
      part.number = *number;
      part.slice = parameters.slice(*number);
      parameters.note_keeper(*number);
      cut_state(part);
      optimizer_->param_groups()[g].params()[i] = part.slice;
      found = true;
    }
  }
  const bool is_known = std::find(models_.begin(), models_.end(), &parameters) != models_.end();
  if (found && !is_known) models_.push_back(&parameters);
}

// By add_param_group, or by params() itself.
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

// Also those of which this rank has nothing: ranks remember something of the same parameters.
std::vector<MomentsOnDisk::Owner> ShardedOptimizer::owners_of_moments() const {
  std::vector<MomentsOnDisk::Owner> owners;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    for (const auto& part : groups_[g]) {
      if (part.flat == nullptr) continue;
      owners.push_back({.parameter = part.slice, .group = g, .name = part.flat->parameters()[part.number].name});
    }
  }
  return owners;
}

void ShardedOptimizer::cut_state(const Part& part) {
  auto& states = optimizer_->state();
  const auto found = states.find(part.parameter.unsafeGetTensorImpl());
  if (found == states.end()) return;
  auto state = std::move(found->second);
  states.erase(found);
  const auto mine = part.flat->owned(part.number);
  Replacement cut([&](const at::Tensor& whole) {
    const auto cut = whole.detach().reshape({-1}).narrow(0, mine.begin, mine.size());
    return cut.to(part.slice.device(), part.slice.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
  });
  visit_fields(*state, cut);
  states[part.slice.unsafeGetTensorImpl()] = std::move(state);
}

// Each rank's part in turn. @collective
void ShardedOptimizer::join_state(const Part& part) {
  auto& states = optimizer_->state();
  const auto found = states.find(part.slice.unsafeGetTensorImpl());
  if (found == states.end()) return;
  auto state = std::move(found->second);
  states.erase(found);
  auto& ranks = part.flat->communicator();
  Replacement join([&](const at::Tensor& mine) {
    auto whole = at::empty({part.parameter.numel()}, mine.options());
    for (int rank = 0; rank < ranks.size(); ++rank) {
      const auto owned = part.flat->plan().owned(part.number, rank);
      if (owned.size() == 0) continue;
      auto place = whole.narrow(0, owned.begin, owned.size());
      if (rank == ranks.rank()) place.copy_(mine);
      ranks.broadcast(place, rank).wait();
    }
    return whole.view(part.parameter.sizes()).to(part.flat->came_from(), part.parameter.scalar_type());
  });
  visit_fields(*state, join);
  states[part.parameter.unsafeGetTensorImpl()] = std::move(state);
}

std::vector<std::size_t> ShardedOptimizer::flats_of(const parallel::FlatParameters& parameters) const {
  std::vector<std::size_t> flats;
  for (const auto& group : groups_) {
    for (const auto& part : group) {
      if (part.flat == &parameters) flats.push_back(parameters.plan().positions[part.number].flat);
    }
  }
  std::sort(flats.begin(), flats.end());
  flats.erase(std::unique(flats.begin(), flats.end()), flats.end());
  return flats;
}

void ShardedOptimizer::before_step() {
  const at::NoGradGuard no_grad;
  take_over_new_ones();
  // It may need a new file, which one rank's disk may have no room for.
  if (on_disk_) mpi::all_or_none(host_, [this] { on_disk_->keep(*optimizer_, owners_of_moments()); });
  for (auto* model : models_) model->check_untouched();
  if (!models_.empty()) models_.front()->arrive();  // all of them are of the same ranks
  if (!gradients_are_whole_) return;
  for (const auto& group : groups_) {
    for (const auto& part : group) {
      if (part.flat == nullptr) continue;
      const auto& gradient = part.parameter.grad();
      auto& mine = part.slice.mutable_grad();
      mine.reset();
      if (!gradient.defined()) continue;
      const auto owned = part.flat->owned(part.number);
      mine = gradient.detach().reshape({-1}).narrow(0, owned.begin, owned.size()).to(part.slice.scalar_type());
    }
  }
}

void ShardedOptimizer::after_step() {
  for (auto* model : models_) model->publish(flats_of(*model));
  if (!gradients_are_whole_) return;
  for (const auto& group : groups_) {
    for (const auto& part : group) {
      if (part.flat != nullptr) part.slice.mutable_grad().reset();
    }
  }
}

std::vector<at::Tensor> ShardedOptimizer::parameters() const {
  std::vector<at::Tensor> parameters;
  for (const auto& group : groups_) {
    for (const auto& part : group) parameters.push_back(part.parameter);
  }
  return parameters;
}

// The user's object is borrowed and may have gone, and its groups with it.
bool ShardedOptimizer::is_alive() const {
  const auto is_kept = [](const Part& part) { return part.flat == nullptr || part.flat->is_kept(part.number); };
  const auto all_kept = [&](const auto& group) { return std::all_of(group.begin(), group.end(), is_kept); };
  return !models_.empty() && std::all_of(groups_.begin(), groups_.end(), all_kept);
}

void ShardedOptimizer::give_back() {
  const at::NoGradGuard no_grad;
  if (!is_alive()) return give_back_parameters();
  for (const auto& group : groups_) {
    for (const auto& part : group) {
      if (part.flat != nullptr) join_state(part);
    }
  }
  give_back_parameters();
}

void ShardedOptimizer::give_back_parameters() {
  const bool alive = is_alive();
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    for (std::size_t i = 0; i < groups_[g].size(); ++i) {
      const auto& part = groups_[g][i];
      if (part.flat == nullptr) continue;
      part.flat->forget_keeper(part.number);
      if (!alive) continue;
      optimizer_->state().erase(static_cast<void*>(part.slice.unsafeGetTensorImpl()));
      optimizer_->param_groups()[g].params()[i] = part.parameter;
    }
  }
  groups_.clear();
  models_.clear();
  on_disk_.reset();
}

}  // namespace hortator::step
