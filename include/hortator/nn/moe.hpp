#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <functional>
#include <hortator/export.hpp>
#include <memory>
#include <optional>

namespace hortator {

namespace parallel {
class TensorRanks;
}

/// Layers for the models of programs.
namespace nn {

struct MoEOptions {
  std::int64_t width = 0;    ///< of a token
  std::int64_t inner = 0;    ///< the width within an expert
  std::int64_t experts = 0;  ///< in all
  std::int64_t top_k = 2;    ///< experts that each token is sent to
  /// The weights of a token's experts add up to 1, as Mixtral's do. Otherwise they are the router's probabilities, as
  /// those of Switch Transformers with top_k = 1.
  bool normalise = true;
  /// Limits each expert to ceil(capacity_factor x top_k x tokens / experts) tokens of this rank's batch, as Switch and
  /// GShard do: all first choices come before all second ones, in the order of the tokens. What an expert has no room
  /// for is dropped: it adds nothing to the result. Default: no limit, nothing is dropped.
  std::optional<double> capacity_factor = {};
  /// Between an expert's two layers. Default: silu.
  std::function<at::Tensor(const at::Tensor&)> activation = {};
};

/// What a router has decided in a layer's newest forward.
struct Routing {
  at::Tensor logits = {};         ///< [tokens, experts], with autograd's graph
  at::Tensor probabilities = {};  ///< softmax(logits), in float32 at least
  at::Tensor chosen = {};         ///< [tokens, top_k], the experts of each token, the likeliest first
  at::Tensor weights = {};        ///< [tokens, top_k], of the experts in the result
  std::int64_t dropped = 0;       ///< choices for which an expert had no room
};

/// The weights of all experts of a layer. Expert e computes down[e] (activation(gate[e] x) * (up[e] x)), where
/// gate_up_proj[e] has gate[e] in its first rows and up[e] behind it.
class HORTATOR_API ExpertsImpl : public torch::nn::Module {
 public:
  explicit ExpertsImpl(const MoEOptions& options);

  at::Tensor gate_up_proj;  ///< [experts, 2 x inner, width]
  at::Tensor down_proj;     ///< [experts, width, inner]
};
TORCH_MODULE(Experts);

/// A mixture of experts: a router sends each token to the `top_k` of the experts that it finds likeliest, and the
/// result is the sum of what they compute, with weights. Takes [.., width], and returns a tensor of the same sizes. The
/// parameters have the names and shapes of transformers' Mixtral: gate.weight, experts.gate_up_proj and
/// experts.down_proj.
///
/// With AcceleratorOptions::parallel.experts = N, each rank of a group of N holds 1/N of the experts of a prepared
/// model, and tokens travel to the ranks of their experts and back: forward and backward are then @collective over the
/// group. Results are those of one rank.
///
///     hortator::nn::MoE experts(hortator::nn::MoEOptions{.width = 64, .inner = 256, .experts = 8});
///     auto y = x + experts(x);
///     loss = loss + 0.01 * hortator::nn::load_balancing_loss(*model);
class HORTATOR_API MoEImpl : public torch::nn::Module {
 public:
  /// Throws UsageError for sizes that do not fit.
  explicit MoEImpl(const MoEOptions& options);

  at::Tensor forward(const at::Tensor& x);

  const MoEOptions& options() const { return options_; }
  /// What the router decided in the newest forward; empty before the first.
  const Routing& routing() const { return routing_; }

  /// Called by prepare(): balance losses count the tokens of these ranks, for as long as `ranks` lives.
  void count_over(const std::shared_ptr<const parallel::TensorRanks>& ranks) { counted_over_ = ranks; }
  std::shared_ptr<const parallel::TensorRanks> counted_over() const { return counted_over_.lock(); }

  torch::nn::Linear gate = nullptr;  ///< the router
  Experts experts = nullptr;

 private:
  MoEOptions options_;
  Routing routing_;
  std::weak_ptr<const parallel::TensorRanks> counted_over_;
};
TORCH_MODULE(MoE);

/// The loss that makes routers use all experts alike, of the newest forward of all MoE layers in `model`, which have
/// the same number of experts. It is transformers' load_balancing_loss_func: experts x the sum over the experts of the
/// fraction of tokens that choose one and its mean probability, over the tokens of all layers; top_k where all experts
/// are used alike. Tokens at which `attention_mask`, [batch, time], is 0 do not count. Add it to the loss with a
/// coefficient such as 0.01.
///
/// In training mode of a prepared model, tokens of all ranks that average gradients count together: the mean of the
/// ranks' losses is that of one rank with all tokens. @collective there
HORTATOR_API at::Tensor load_balancing_loss(const torch::nn::Module& model, const at::Tensor& attention_mask = {});

/// The mean of logsumexp(logits)^2 over tokens and MoE layers of the newest forward, which keeps routers' logits small
/// (ST-MoE's router z-loss; a usual coefficient is 0.001). Tokens count as in load_balancing_loss().
/// @collective in training mode of a prepared model.
HORTATOR_API at::Tensor router_z_loss(const torch::nn::Module& model, const at::Tensor& attention_mask = {});

}  // namespace nn
}  // namespace hortator
