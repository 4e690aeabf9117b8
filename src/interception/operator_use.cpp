#include "interception/operator_use.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>

namespace hortator::interception {
namespace {

// Operators that only read shapes and types, or change a tensor's metadata; or that run operators which are intercepted
// themselves (backward).
constexpr std::array<std::string_view, 15> about_tensors = {"aten::_has_compatible_shallow_copy_type",
                                                            "aten::_backward",
                                                            "aten::requires_grad_",
                                                            "aten::retain_grad",
                                                            "aten::empty_like",
                                                            "aten::zeros_like",
                                                            "aten::ones_like",
                                                            "aten::full_like",
                                                            "aten::rand_like",
                                                            "aten::randn_like",
                                                            "aten::new_empty",
                                                            "aten::new_zeros",
                                                            "aten::new_ones",
                                                            "aten::new_full",
                                                            "aten::new_empty_strided"};

// On every kind of device. Autocast casts all of their arguments that are floating-point numbers.
constexpr std::array<std::string_view, 11> cast_by_autocast = {"aten::linear",
                                                               "aten::matmul",
                                                               "aten::mm",
                                                               "aten::bmm",
                                                               "aten::addmm",
                                                               "aten::addbmm",
                                                               "aten::baddbmm",
                                                               "aten::conv1d",
                                                               "aten::conv2d",
                                                               "aten::conv3d",
                                                               "aten::scaled_dot_product_attention"};

bool is_cast_by_autocast(const std::string& name) {
  return std::ranges::find(cast_by_autocast, name) != cast_by_autocast.end();
}

bool is_about_tensors(const std::string& name) { return std::ranges::find(about_tensors, name) != about_tensors.end(); }

// Changed in training, which the schema does not say.
bool is_running_statistic(const std::string& argument) {
  return argument == "running_mean" || argument == "running_var";
}

}  // namespace

OperatorUse inspect_operator(const c10::OperatorHandle& op) {
  const auto& schema = op.schema();
  OperatorUse use{.arguments = schema.arguments().size()};
  bool makes_alias = false;
  for (std::size_t i = 0; i < use.arguments; ++i) {
    const auto& argument = schema.arguments()[i];
    const auto* alias = argument.alias_info();
    const bool is_written = alias != nullptr ? alias->isWrite() : is_running_statistic(argument.name());
    if (is_written && i < 64) use.written |= std::uint64_t{1} << i;
    makes_alias |= alias != nullptr && !alias->isWrite();
  }
  use.leaves_bytes_alone = is_about_tensors(schema.name()) || (makes_alias && use.written == 0);
  // Not the forms that write to a tensor of the caller (mm.out).
  use.casts = is_cast_by_autocast(schema.name()) && use.written == 0;
  return use;
}

const OperatorUse& use_of(const c10::OperatorHandle& op) {
  thread_local std::unordered_map<const c10::FunctionSchema*, OperatorUse> known;
  const auto* schema = &op.schema();
  const auto found = known.find(schema);
  return found != known.end() ? found->second : known.emplace(schema, inspect_operator(op)).first->second;
}

}  // namespace hortator::interception
