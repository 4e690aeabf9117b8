#include <ATen/ATen.h>
#include <ATen/OpMathType.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <hortator/nn/linear_cross_entropy.hpp>
#include <optional>

#include "core/text/text.hpp"
#include "interception/weight_operators.hpp"
#include "parallel/losses/scores_in_chunks.hpp"
#include "parallel/tensor/divided_tensor.hpp"
#include "parallel/tensor/rules/class_numbers.hpp"

namespace hortator::nn {
namespace {

using parallel::losses::ChunkedScores;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

void refuse_shapes(const at::Tensor& hidden, const at::Tensor& target, at::IntArrayRef weight) {
  const bool fits = weight.size() == 2 && hidden.dim() >= 1 && hidden.size(-1) == weight[1] &&
                    hidden.numel() == target.numel() * weight[1];
  if (fits && !target.is_floating_point()) return;
  throw UsageError({.what = text::concat("linear_cross_entropy() got hidden states ", hidden.sizes(), ", a weight ",
                                         weight, " and targets ", target.sizes(), " of type ", target.scalar_type()),
                    .why = "hidden states are [.., width], the weight [classes, width], and targets [..], one whole "
                           "number for each row",
                    .hint = "give the inputs of the last linear layer, its weight, and the classes"});
}

void refuse_options(const LinearCrossEntropyOptions& options) {
  if (options.label_smoothing >= 0 && options.label_smoothing <= 1 && options.rows_at_once >= 0) return;
  throw UsageError({.what = text::concat("linear_cross_entropy() got label_smoothing ", options.label_smoothing,
                                         " and rows_at_once ", options.rows_at_once),
                    .hint = "smoothing is from 0 to 1, and rows are 0 (automatic) or more"});
}

/// The type of the products: autocast's, where it is on.
at::ScalarType type_of_products(const at::Tensor& hidden) {
  const auto device = hidden.device().type();
  const bool is_cast = at::autocast::is_autocast_enabled(device) && hidden.scalar_type() != at::kDouble;
  return is_cast ? at::autocast::get_autocast_dtype(device) : hidden.scalar_type();
}

// On a device LibTorch's fast products of 16-bit matrices need rows of a multiple of 16 bytes. Without them, those of
// GPT-2's 50257 words take several times as long (share/doc/gpu.md).
std::int64_t multiple_of_classes(const at::Tensor& rows) {
  return !rows.is_cpu() && at::isReducedFloatingType(type_of_products(rows)) ? 8 : 1;
}

std::int64_t rows_at_once(const at::Tensor& hidden, std::int64_t classes, std::int64_t asked) {
  if (asked > 0) return asked;
  const auto scores = std::int64_t{1} << (hidden.is_cpu() ? 23 : 26);
  return std::max<std::int64_t>(64, scores / std::max<std::int64_t>(classes, 1) / 64 * 64);
}

// The gradients are those of the sum, and are known in forward: backward multiplies them by that of the loss.
struct InChunks : torch::autograd::Function<InChunks> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& rows, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias, const ChunkedScores& scores) {
    auto loss = scores.compute(rows, weight, bias.value_or(at::Tensor()));
    context->save_for_backward({loss.of_rows, loss.of_weight, loss.of_bias});
    return loss.sum;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    if (at::GradMode::is_enabled()) {
      throw UsageError({.what = "linear_cross_entropy() has no second derivatives",
                        .why = "it computes its gradients together with the loss",
                        .hint = "use at::linear and cross_entropy for this"});
    }
    variable_list found;
    for (const auto& saved : context->get_saved_variables())
      found.push_back(saved.defined() ? saved * gradients[0].to(saved.scalar_type()) : at::Tensor());
    found.emplace_back();
    return found;
  }
};

/// This rank's classes of a weight or bias that is divided as `weight` is, without padding.
at::Tensor own_classes(const at::Tensor& part, const parallel::Operand& weight) {
  if (!weight.is_divided()) return part;
  const auto own =
      parallel::without_padding(part.size(0), *weight.division, weight.ranks->index(), weight.ranks->size());
  return own == part.size(0) ? part : part.narrow(0, 0, own);
}

/// This rank's part of a bias, which may be divided as the weight is.
at::Tensor part_like(const parallel::Operand& weight, const at::Tensor& bias) {
  const auto given = parallel::operand_of(bias);
  if (given.is_divided() || !weight.is_divided()) return given.tensor;
  return parallel::part_of(given.tensor, *weight.division, weight.ranks);
}

/// Where the classes are divided in another way than rows of the weight, or an adapter changes the products.
at::Tensor with_all_scores(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& target,
                           const LinearCrossEntropyOptions& options) {
  const auto scores = at::linear(hidden, weight, options.bias).flatten(0, -2);
  return at::cross_entropy_loss(scores.to(at::toOpMathType(scores.scalar_type())), target.flatten(), {},
                                options.mean ? at::Reduction::Mean : at::Reduction::Sum, options.ignore_index,
                                options.label_smoothing);
}

}  // namespace

at::Tensor linear_cross_entropy(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& target,
                                const LinearCrossEntropyOptions& options) {
  const auto part = parallel::operand_of(weight);
  const bool is_adapted = interception::operator_of(part.tensor, interception::WeightLayer::adapters) != nullptr;
  const auto packed = is_adapted ? nullptr : interception::operator_of(part.tensor, interception::WeightLayer::packed);
  const auto sizes = part.is_divided() ? part.whole_sizes() : interception::sizes_of_weight(part.tensor);
  refuse_shapes(hidden, target, sizes);
  refuse_options(options);
  const bool is_divided = part.is_divided();
  const bool has_other_classes = is_divided && (part.division->dim != 0 || part.division->blocks != 1);
  if (has_other_classes || (!packed && interception::changes_products(part.tensor)))
    return with_all_scores(hidden, weight, target, options);

  const auto classes = sizes[0];
  const auto targets = target.flatten();
  const auto is_ignored = targets.eq(options.ignore_index);
  const auto checked = targets.masked_fill(is_ignored, 0);
  parallel::rules::require_below(checked, classes, "linear_cross_entropy()");

  const auto input = parallel::operand_of(hidden);
  auto rows = is_divided ? input.whole_for_ranks(part.ranks) : input.whole();
  rows = rows.reshape({-1, rows.size(-1)});
  const auto own_weight = own_classes(part.tensor, part);
  const auto own_bias = options.bias.defined() ? own_classes(part_like(part, options.bias), part) : at::Tensor();

  const bool has_gradients = at::GradMode::is_enabled();
  const auto wants = [&](const at::Tensor& tensor) {
    return has_gradients && tensor.defined() && tensor.requires_grad();
  };
  // With its padding, so that all ranks compute as many rows at once.
  const auto present = packed ? classes : part.tensor.size(0);
  const ChunkedScores scores({.target = checked,
                              .is_ignored = is_ignored,
                              .classes = classes,
                              .part = part.tensor.size(0),
                              .ranks = part.ranks,
                              .smoothing = options.label_smoothing,
                              .type = type_of_products(rows),
                              .rows_at_once = rows_at_once(rows, present, options.rows_at_once),
                              .multiple = multiple_of_classes(rows),
                              .packed = packed,
                              .wants_rows = wants(rows),
                              .wants_weight = wants(own_weight),
                              .wants_bias = wants(own_bias)});
  const auto sum =
      InChunks::apply(rows, own_weight, own_bias.defined() ? std::optional(own_bias) : std::nullopt, scores);
  return options.mean ? sum / is_ignored.logical_not().sum() : sum;
}

}  // namespace hortator::nn
