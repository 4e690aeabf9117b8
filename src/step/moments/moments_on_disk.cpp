#include "step/moments/moments_on_disk.hpp"

#include <ATen/ops/empty_like.h>
#include <c10/core/GradMode.h>
#include <c10/util/Type.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>

#include <algorithm>
#include <functional>
#include <hortator/error.hpp>
#include <typeinfo>
#include <utility>

#include "core/text/text.hpp"
#include "interception/claims.hpp"
#include "step/moments/optimizer_fields.hpp"

namespace hortator::step {
namespace {

bool has_amsgrad(const torch::optim::OptimizerOptions& options) {
  if (const auto* adamw = dynamic_cast<const torch::optim::AdamWOptions*>(&options)) return adamw->amsgrad();
  return dynamic_cast<const torch::optim::AdamOptions&>(options).amsgrad();
}

/// Calls `act` with each moment of a state, including undefined ones.
class MomentVisitor final : public FieldVisitor {
 public:
  MomentVisitor(bool amsgrad, std::function<void(at::Tensor&)> act) : amsgrad_(amsgrad), act_(std::move(act)) {}
  void field(std::string_view, double&) override {}
  void field(std::string_view, std::int64_t&) override {}
  void field(std::string_view, bool&) override {}
  void field(std::string_view name, at::Tensor& value) override {
    if (amsgrad_ || name != "max_exp_avg_sq") act_(value);
  }
  void field(std::string_view, std::deque<at::Tensor>&) override {}

 private:
  bool amsgrad_;
  std::function<void(at::Tensor&)> act_;
};

/// Calls act(owner, moment) for each moment of each owner, in order. Creates missing states.
template <typename Act>
void for_each_moment(torch::optim::Optimizer& optimizer, const std::vector<MomentsOnDisk::Owner>& owners,
                     const Act& act) {
  for (const auto& owner : owners) {
    const auto& options = optimizer.param_groups()[owner.group].options();
    auto& state = optimizer.state()[owner.parameter.unsafeGetTensorImpl()];
    if (!state) state = make_state(options);
    MomentVisitor visitor(has_amsgrad(options), [&](at::Tensor& moment) { act(owner, moment); });
    visit_fields(*state, visitor);
  }
}

/// Whether this rank has no elements of the parameter. Its state exists, as on the other ranks, with empty moments.
bool is_empty(const MomentsOnDisk::Owner& owner) { return owner.parameter.numel() == 0; }

}  // namespace

void require_known_moments(const torch::optim::Optimizer& optimizer) {
  const auto& type = typeid(optimizer);
  if (type == typeid(torch::optim::AdamW) || type == typeid(torch::optim::Adam)) return;
  throw UsageError({.what = text::concat("zero.offload_optimizer cannot take the moments of ",
                                         c10::demangle(type.name()), " to disk"),
                    .why = "it allocates them in its first step, in memory",
                    .hint = "use AdamW or Adam, or unset zero.offload_optimizer"});
}

void MomentsOnDisk::keep(torch::optim::Optimizer& optimizer, const std::vector<Owner>& owners) {
  bool all = true;
  for_each_moment(optimizer, owners, [&](const Owner& owner, const at::Tensor& moment) {
    all = all && moment.defined() && (is_empty(owner) || interception::claim_of(moment));
  });
  if (!all) move(optimizer, owners);
}

// The moments stay in memory, or in the old file, until all are in the new file: its disk may fail halfway.
void MomentsOnDisk::move(torch::optim::Optimizer& optimizer, const std::vector<Owner>& owners) {
  const at::NoGradGuard no_grad;
  std::vector<parallel::DiskArrays::Spec> specs;
  std::vector<at::Tensor> former;
  for_each_moment(optimizer, owners, [&](const Owner& owner, at::Tensor& moment) {
    if (is_empty(owner)) return;
    specs.push_back({.name = text::concat("(a moment of) ", owner.name),
                     .elements = owner.parameter.numel(),
                     .type = owner.parameter.scalar_type()});
    former.push_back(moment);
  });
  const auto values = [&](std::size_t i, const at::Tensor& array) {
    former[i].defined() ? array.copy_(former[i]) : array.zero_();
  };
  auto moved = std::make_unique<parallel::DiskArrays>(std::move(specs), home_);
  moved->fill(values);
  std::size_t next = 0;
  for_each_moment(optimizer, owners, [&](const Owner& owner, at::Tensor& moment) {
    moment =
        is_empty(owner) ? at::empty_like(owner.parameter.detach()) : moved->range(next++, 0, owner.parameter.sizes());
  });
  arrays_ = std::move(moved);
}

}  // namespace hortator::step
