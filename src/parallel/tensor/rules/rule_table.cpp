#include <ATen/core/dispatch/Dispatcher.h>

#include <string_view>
#include <unordered_map>

#include "core/text/text.hpp"
#include "parallel/tensor/rules/rules.hpp"

namespace hortator::parallel::rules {
namespace {

const std::unordered_map<std::string_view, OperatorRule>& rules_by_name() {
  static const std::unordered_map<std::string_view, OperatorRule> rules = {
      {"aten::view", view},
      {"aten::reshape", reshape},
      {"aten::_reshape_alias", reshape},
      {"aten::_unsafe_view", reshape},
      {"aten::transpose.int", transpose},
      {"aten::t", transpose_matrix},
      {"aten::permute", permute},
      {"aten::unsqueeze", unsqueeze},
      {"aten::squeeze.dim", squeeze_dim},
      {"aten::expand", expand},
      {"aten::select.int", select},
      {"aten::slice.Tensor", slice},
      {"aten::index_select", index_select},
      {"aten::split.Tensor", split},
      {"aten::split_with_sizes", split_with_sizes},
      {"aten::unbind.int", unbind},
      {"aten::cat", cat},
      {"aten::stack", stack},
      {"aten::matmul", matmul},
      {"aten::mm", matmul},
      {"aten::bmm", matmul},
      {"aten::linear", linear},
      {"aten::addmm", addmm},
      {"aten::baddbmm", addmm},
      {"aten::scaled_dot_product_attention", attention},
      {"aten::layer_norm", layer_norm},
      {"aten::rms_norm", rms_norm},
      {"aten::softmax.int", softmax},
      {"aten::_softmax", along_dims},
      {"aten::log_softmax.int", log_softmax},
      {"aten::_log_softmax", along_dims},
      {"aten::sum", sum},
      {"aten::sum.dim_IntList", sum},
      {"aten::mean", mean},
      {"aten::mean.dim", mean},
      {"aten::amax", along_dims},
      {"aten::amin", along_dims},
      {"aten::var.correction", along_dims},
      {"aten::std.correction", along_dims},
      {"aten::linalg_vector_norm", along_dims},
      {"aten::norm.ScalarOpt_dim", along_dims},
      {"aten::logsumexp", along_dims},
      {"aten::argmax", along_dims},
      {"aten::argmin", along_dims},
      {"aten::max.dim", along_dims},
      {"aten::min.dim", along_dims},
      {"aten::cumsum", along_dims},
      {"aten::embedding", embedding},
      {"aten::cross_entropy_loss", cross_entropy},
      {"aten::nll_loss_nd", nll_loss},
      {"aten::nll_loss", nll_loss},
      {"aten::normal_", fill_parameter},
      {"aten::uniform_", fill_parameter},
      {"aten::zero_", elementwise},
      {"aten::copy_", elementwise},
      {"aten::clone", elementwise},
      {"aten::detach", elementwise},
      {"aten::alias", elementwise},
      {"aten::_to_copy", elementwise},
      {"aten::dropout", elementwise},
      {"aten::dropout_", elementwise},
      {"aten::empty_like", elementwise},
      {"aten::zeros_like", elementwise},
      {"aten::ones_like", elementwise},
      {"aten::full_like", elementwise},
      {"aten::rand_like", elementwise},
      {"aten::randn_like", elementwise},
      {"aten::bernoulli", elementwise},
      {"aten::bernoulli_.float", elementwise},
      {"aten::masked_fill.Scalar", elementwise},
      {"aten::masked_fill.Tensor", elementwise},
      {"aten::masked_fill_.Scalar", elementwise},
      {"aten::where.self", elementwise},
  };
  return rules;
}

}  // namespace

OperatorRule find_rule(const c10::OperatorHandle& op) {
  const auto& name = op.operator_name();
  const auto whole_name = name.overload_name.empty() ? name.name : text::concat(name.name, ".", name.overload_name);
  const auto found = rules_by_name().find(whole_name);
  if (found != rules_by_name().end()) return found->second;
  // aten::equal is called pointwise as well, and returns a bool.
  const auto& returns = op.schema().returns();
  const bool makes_tensor = returns.size() == 1 && returns[0].type()->isSubtypeOf(*c10::TensorType::get());
  return makes_tensor && op.hasTag(at::Tag::pointwise) ? elementwise : nullptr;
}

}  // namespace hortator::parallel::rules
