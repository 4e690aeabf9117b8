#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <hortator/training/optimizers.hpp>
#include <limits>

#include "step/algorithms/factored_squares.hpp"

namespace hortator {
namespace {

using step::FactoredSquares;

double smallest_of(const at::Tensor& parameter, const NamedOptions& options) {
  if (options.get("eps1") > 0) return options.get("eps1");
  switch (parameter.scalar_type()) {
    case at::kDouble:
      return std::numeric_limits<double>::epsilon();
    case at::kHalf:
      return 0x1p-10;
    case at::kBFloat16:
      return 0x1p-7;
    default:
      return std::numeric_limits<float>::epsilon();
  }
}

std::vector<std::int64_t> with_one_at(std::vector<std::int64_t> sizes, std::size_t from_back) {
  sizes[sizes.size() - from_back] = 1;
  return sizes;
}

at::Tensor& moment_of(MomentState& state, const char* name, at::IntArrayRef sizes, const at::TensorOptions& options) {
  auto& moment = state.moments[name];
  if (!moment.defined()) moment = at::zeros(sizes, options);
  return moment;
}

}  // namespace

/// The step of one parameter, in three parts that its ranks' sums separate.
class Adafactor::Step {
 public:
  Step(SteppedParameter& stepped, const NamedOptions& options)
      : stepped_(stepped),
        options_(options),
        gradient_(stepped.gradient.reshape({-1})),
        begin_(stepped.slice.begin),
        is_factored_(stepped.slice.sizes.size() > 1) {
    if (is_factored_)
      squares_.emplace(step::matrix_layout(stepped.slice.sizes), core::Range{begin_, begin_ + gradient_.numel()});
  }

  /// What to sum over the ranks: the parameter's squares, and those of gradients along rows and columns.
  at::Tensor sums() const {
    std::vector<at::Tensor> all = {stepped_.parameter.square().sum(at::kDouble).view({1})};
    if (is_factored_) {
      const auto both = squares_->sums(gradient_);
      all.push_back(both.rows.view({-1}));
      all.push_back(both.columns.view({-1}));
    } else {
      all.push_back(at::zeros({stepped_.slice.whole_elements()}, gradient_.options().dtype(at::kDouble)));
      all.back().narrow(0, begin_, gradient_.numel()).copy_(gradient_.square());
    }
    auto joined = at::cat(all);
    return stepped_.slice.counts ? joined : joined.zero_();
  }

  /// Takes the sums over all ranks, decays the weights, and returns the square of the update's norm.
  at::Tensor prepare(const at::Tensor& sums) {
    const auto whole = static_cast<double>(stepped_.slice.whole_elements());
    const auto step = static_cast<double>(stepped_.state.step);
    const double rate = std::min(options_.get_lr(), 1 / std::sqrt(step));
    factor_ = sums[0].div(whole).sqrt_().clamp_min_(options_.get("eps2")).mul_(rate);
    stepped_.parameter.mul_(1 - options_.get_lr() * options_.get("weight_decay"));
    update_moments(sums.narrow(0, 1, sums.numel() - 1), std::pow(step, options_.get("beta2_decay")));
    const auto square = update().square().sum(at::kDouble);
    return stepped_.slice.counts ? square : square.zero_();
  }

  void finish(const at::Tensor& update_square) {
    const auto whole = static_cast<double>(stepped_.slice.whole_elements());
    const auto size = update_square.div(whole).sqrt_().div_(options_.get("d")).clamp_min_(1);
    auto& parameter = stepped_.parameter;
    parameter.addcmul_(update().view(parameter.sizes()), factor_.div(size).to(parameter.scalar_type()), -1);
  }

 private:
  void update_moments(const at::Tensor& sums, double weight) {
    const auto options = gradient_.options();
    auto& state = stepped_.state;
    const auto& sizes = stepped_.slice.sizes;
    if (!is_factored_) {
      auto& variance = moment_of(state, "whole/variance", sizes, options);
      variance.lerp_(sums.view(sizes).to(options), weight);
      return;
    }
    const auto layout = step::matrix_layout(sizes);
    const auto rows = layout.matrices * layout.rows;
    auto& of_rows = moment_of(state, "whole/row_var", with_one_at(sizes, 1), options);
    auto& of_columns = moment_of(state, "whole/col_var", with_one_at(sizes, 2), options);
    const auto mean = [&](std::int64_t from, std::int64_t count, std::int64_t terms, const at::Tensor& like) {
      return sums.narrow(0, from, count).div(static_cast<double>(terms)).view(like.sizes()).to(options);
    };
    of_rows.lerp_(mean(0, rows, layout.columns, of_rows), weight);
    of_columns.lerp_(mean(rows, sums.numel() - rows, layout.rows, of_columns), weight);
  }

  at::Tensor update() const {
    const auto smallest = smallest_of(stepped_.parameter, options_);
    return estimate(smallest).clamp_min_(smallest * smallest).rsqrt_().mul_(gradient_);
  }

  at::Tensor estimate(double smallest) const {
    auto& moments = stepped_.state.moments;
    if (!is_factored_) return moments["whole/variance"].view({-1}).narrow(0, begin_, gradient_.numel()).clone();
    const auto layout = step::matrix_layout(stepped_.slice.sizes);
    return squares_->estimate(moments["whole/row_var"].view({layout.matrices, layout.rows}),
                              moments["whole/col_var"].view({layout.matrices, layout.columns}), smallest);
  }

  SteppedParameter& stepped_;
  const NamedOptions& options_;
  at::Tensor gradient_;
  std::int64_t begin_;
  bool is_factored_;
  std::optional<FactoredSquares> squares_;
  at::Tensor factor_;
};

NamedOptions AdafactorOptions::named() const {
  return NamedOptions({{"lr", lr},
                       {"beta2_decay", beta2_decay},
                       {"eps1", eps1},
                       {"eps2", eps2},
                       {"d", d},
                       {"weight_decay", weight_decay}},
                      {"whole/row_var", "whole/col_var", "whole/variance"});
}

Adafactor::Adafactor(const std::vector<torch::optim::OptimizerParamGroup>& groups, const AdafactorOptions& defaults)
    : SlicedOptimizer(groups, defaults.named()) {}

Adafactor::Adafactor(std::vector<at::Tensor> parameters, const AdafactorOptions& defaults)
    : SlicedOptimizer({torch::optim::OptimizerParamGroup(std::move(parameters))}, defaults.named()) {}

void Adafactor::step_parameters(std::vector<SteppedParameter>& parameters, const NamedOptions& options,
                                const ParameterSlices& slices) {
  std::vector<Step> steps;
  for (auto& one : parameters) steps.emplace_back(one, options);
  std::vector<at::Tensor> sums;
  for (const auto& step : steps) sums.push_back(step.sums());
  auto all = at::cat(sums);
  slices.sum(all);
  std::vector<at::Tensor> squares;
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    squares.push_back(steps[i].prepare(all.narrow(0, offset, sums[i].numel())));
    offset += sums[i].numel();
  }
  auto update_squares = at::stack(squares);
  slices.sum(update_squares);
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i].finish(update_squares[static_cast<std::int64_t>(i)]);
}

}  // namespace hortator
