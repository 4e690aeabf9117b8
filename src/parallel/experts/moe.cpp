#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/silu.h>

#include <cmath>
#include <functional>
#include <hortator/error.hpp>
#include <hortator/nn/moe.hpp>
#include <hortator/training/recompute.hpp>
#include <vector>

#include "core/text/text.hpp"
#include "parallel/collectives/differentiable.hpp"
#include "parallel/experts/routing.hpp"
#include "parallel/experts/token_exchange.hpp"
#include "parallel/tensor/divided_tensor.hpp"

namespace hortator::nn {
namespace {

/// Experts that one rank has.
struct LocalExperts {
  at::Tensor gate_up_proj = {};  ///< [experts, 2 x inner, width]
  at::Tensor down_proj = {};     ///< [experts, width, inner]
  std::function<at::Tensor(const at::Tensor&)> activation = {};

  /// What the experts compute of `rows`: the first `counts[0]` are those of the first expert. An expert without rows
  /// gets zero gradients. Does not communicate.
  at::Tensor operator()(const at::Tensor& rows, const std::vector<std::int64_t>& counts) const;
};

// unbind(), not select(): its backward makes one gradient of all experts, not one for each.
at::Tensor LocalExperts::operator()(const at::Tensor& rows, const std::vector<std::int64_t>& counts) const {
  const auto inputs = rows.split_with_sizes(counts);
  const auto gate_ups = gate_up_proj.unbind(0), downs = down_proj.unbind(0);
  std::vector<at::Tensor> outputs;
  for (std::size_t expert = 0; expert < inputs.size(); ++expert) {
    const auto gate_up = at::linear(inputs[expert], gate_ups[expert]).chunk(2, -1);
    outputs.push_back(at::linear(activation(gate_up[0]) * gate_up[1], downs[expert]));
  }
  return at::cat(outputs);
}

[[noreturn]] void refuse(const char* what, std::int64_t value, const char* why) {
  throw UsageError({.what = text::concat("MoE: ", what, " is ", value), .why = why});
}

const MoEOptions& checked(const MoEOptions& options) {
  if (options.width < 1) refuse("width", options.width, "it is the width of a token, from 1");
  if (options.inner < 1) refuse("inner", options.inner, "it is the width within an expert, from 1");
  if (options.experts < 1) refuse("experts", options.experts, "it is the number of experts, from 1");
  if (options.top_k < 1 || options.top_k > options.experts)
    refuse("top_k", options.top_k, "each token is sent to 1 expert up to all of them");
  if (options.capacity_factor && !(*options.capacity_factor > 0)) {
    throw UsageError({.what = text::concat("MoE: capacity_factor is ", *options.capacity_factor),
                      .why = "it is a multiple of the tokens that each expert gets where all are used alike",
                      .hint = "use a number above 0, or leave it out, so that no token is dropped"});
  }
  return options;
}

/// As torch::nn::Linear begins.
at::Tensor first_weights(at::IntArrayRef sizes) {
  const auto bound = 1 / std::sqrt(static_cast<double>(sizes.back()));
  return at::empty(sizes).uniform_(-bound, bound);
}

/// The tokens as rows.
at::Tensor tokens_of(const at::Tensor& x, std::int64_t width) {
  if (x.dim() == 0 || x.size(-1) != width) {
    throw UsageError({.what = text::concat("MoE got a tensor of sizes [", text::join(x.sizes()), "]"),
                      .why = text::concat("the last one must be its width, ", width)});
  }
  return x.reshape({-1, width});
}

/// A parameter's part, whose gradient is that of the mean over the ranks of a group: its experts compute tokens of all.
at::Tensor shared(const parallel::Operand& parameter) {
  const auto share = 1.0 / parameter.ranks->size();
  return parallel::apply(parameter.tensor, {.forward = [](const at::Tensor& it) { return it.detach().view_as(it); },
                                            .backward = [share](const at::Tensor& it) { return it * share; }});
}

/// The ranks among which the experts are divided; null if this one has all.
parallel::SharedRanks ranks_of(const ExpertsImpl& experts) { return parallel::operand_of(experts.gate_up_proj).ranks; }

/// What the experts compute of `rows`: the first `counts[0]` rows are those of the first expert. @collective over
/// the ranks that have the experts
at::Tensor computed(const ExpertsImpl& experts, const MoEOptions& options, const at::Tensor& rows,
                    const std::vector<std::int64_t>& counts) {
  const auto gate_up = parallel::operand_of(experts.gate_up_proj), down = parallel::operand_of(experts.down_proj);
  if (!gate_up.is_divided()) return LocalExperts{gate_up.tensor, down.tensor, options.activation}(rows, counts);
  const parallel::TokenExchange exchange(counts, gate_up.ranks);
  return exchange.compute(rows, LocalExperts{shared(gate_up), shared(down), options.activation});
}

}  // namespace

ExpertsImpl::ExpertsImpl(const MoEOptions& options)
    : gate_up_proj(
          register_parameter("gate_up_proj", first_weights({options.experts, 2 * options.inner, options.width}))),
      down_proj(register_parameter("down_proj", first_weights({options.experts, options.width, options.inner}))) {}

MoEImpl::MoEImpl(const MoEOptions& options) : options_(checked(options)) {
  if (!options_.activation) options_.activation = [](const at::Tensor& x) { return at::silu(x); };
  const auto router = torch::nn::LinearOptions(options.width, options.experts).bias(false);
  gate = register_module("gate", torch::nn::Linear(router));
  experts = register_module("experts", Experts(options));
}

at::Tensor MoEImpl::forward(const at::Tensor& x) {
  const auto ranks = ranks_of(*experts);
  Routing routing;
  parallel::Assignment taken;
  at::Tensor rows;
  at::Tensor tokens;
  const auto look = [&] { tokens = tokens_of(x, options_.width); };
  const auto choose = [&] {
    const auto count = tokens.size(0);
    routing = parallel::route(gate(tokens), options_);
    taken = parallel::assign(routing.chosen, options_.experts, parallel::capacity_of(options_, count));
    routing.dropped = routing.chosen.numel() - taken.choices.numel();
    rows = tokens.index_select(0, taken.choices.remainder(count));
  };
  parallel::all_or_none(ranks, look);  // first: at ZeRO's stage 3 the gate is gathered from all ranks
  parallel::all_or_none(ranks, choose);
  const auto outputs = computed(*experts, options_, rows, taken.counts);
  const auto sum = parallel::combined(outputs, taken.choices, routing.weights);
  if (!is_recomputing()) routing_ = std::move(routing);
  return sum.to(x.scalar_type()).view(x.sizes());
}

}  // namespace hortator::nn
