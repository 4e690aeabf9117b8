#include <ATen/core/dispatch/Dispatcher.h>

#include <string>
#include <string_view>
#include <unordered_map>

#include "core/text/text.hpp"
#include "parallel/tensor/rules/rules.hpp"

namespace hortator::parallel::rules {
namespace {

struct RuleRow {
  OperatorRule rule;
  std::string_view operators;  ///< of ATen, between blanks
};

constexpr RuleRow table[] = {
    {view, "view"},
    {reshape, "reshape _reshape_alias _unsafe_view"},
    {transpose, "transpose.int"},
    {transpose_matrix, "t"},
    {permute, "permute"},
    {unsqueeze, "unsqueeze"},
    {squeeze_dim, "squeeze.dim"},
    {expand, "expand"},
    {select, "select.int"},
    {slice, "slice.Tensor"},
    {index_select, "index_select"},
    {split, "split.Tensor"},
    {split_with_sizes, "split_with_sizes"},
    {unbind, "unbind.int"},
    {cat, "cat"},
    {stack, "stack"},
    {matmul, "matmul mm bmm"},
    {linear, "linear"},
    {addmm, "addmm baddbmm"},
    {attention, "scaled_dot_product_attention"},
    {layer_norm, "layer_norm"},
    {rms_norm, "rms_norm"},
    {softmax, "softmax.int"},
    {along_dims,
     "_softmax _log_softmax amax amin var.correction std.correction linalg_vector_norm norm.ScalarOpt_dim "
     "logsumexp argmax argmin max.dim min.dim cumsum"},
    {log_softmax, "log_softmax.int"},
    {sum, "sum sum.dim_IntList"},
    {mean, "mean mean.dim"},
    {embedding, "embedding"},
    {cross_entropy, "cross_entropy_loss"},
    {nll_loss, "nll_loss_nd nll_loss"},
    {fill_parameter, "normal_ uniform_"},
    {elementwise,
     "zero_ copy_ clone detach alias _to_copy dropout dropout_ empty_like zeros_like ones_like full_like rand_like "
     "randn_like bernoulli bernoulli_.float masked_fill.Scalar masked_fill.Tensor masked_fill_.Scalar where.self"},
};

const std::unordered_map<std::string, OperatorRule>& rules_by_name() {
  static const auto rules = [] {
    std::unordered_map<std::string, OperatorRule> by_name;
    for (const auto& [rule, operators] : table) {
      for (const auto& name : text::split(operators, ' ')) by_name.emplace(text::concat("aten::", name), rule);
    }
    return by_name;
  }();
  return rules;
}

}  // namespace
}  // namespace hortator::parallel::rules

namespace hortator::parallel {

OperatorRule find_rule(const c10::OperatorHandle& op) {
  const auto& name = op.operator_name();
  const auto whole_name = name.overload_name.empty() ? name.name : text::concat(name.name, ".", name.overload_name);
  const auto found = rules::rules_by_name().find(whole_name);
  if (found != rules::rules_by_name().end()) return found->second;
  // aten::equal is called pointwise as well, and returns a bool.
  const auto& returns = op.schema().returns();
  const bool makes_tensor = returns.size() == 1 && returns[0].type()->isSubtypeOf(*c10::TensorType::get());
  return makes_tensor && op.hasTag(at::Tag::pointwise) ? rules::elementwise : nullptr;
}

}  // namespace hortator::parallel
