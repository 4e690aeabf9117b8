#include "observe/profile/flop_counter.hpp"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string_view>

namespace hortator::observe {
namespace {

using OperatorInputs = c10::ArrayRef<const c10::IValue>;

// Each element of `a` is multiplied with each column of `b`.
double product(const at::Tensor& a, const at::Tensor& b) {
  return 2.0 * static_cast<double>(a.numel()) * static_cast<double>(b.dim() > 1 ? b.size(-1) : 1);
}

double first_two(OperatorInputs inputs) { return product(inputs[0].toTensor(), inputs[1].toTensor()); }
double second_two(OperatorInputs inputs) { return product(inputs[1].toTensor(), inputs[2].toTensor()); }

// A convolution's list has one element per dimension, or one for all dimensions.
std::int64_t element(const c10::IValue& list, std::size_t i) {
  const auto numbers = list.toIntVector();
  return numbers.size() == 1 ? numbers.front() : numbers.at(i);
}

// The kernel is applied once for each of `numbers` elements: those of the output or, if transposed, of the input.
double forward_convolution(double numbers, const at::Tensor& weight) {
  return weight.size(0) == 0 ? 0
                             : 2 * numbers * static_cast<double>(weight.numel()) / static_cast<double>(weight.size(0));
}

double output_elements(OperatorInputs inputs) {
  const auto& input = inputs[0].toTensor();
  const auto& weight = inputs[1].toTensor();
  auto numbers = static_cast<double>(input.size(0) * weight.size(0));
  for (std::int64_t i = 2; i < weight.dim(); ++i) {
    const auto dimension = static_cast<std::size_t>(i - 2);
    const auto reach = element(inputs[5], dimension) * (weight.size(i) - 1) + 1;
    const auto room = input.size(i) + 2 * element(inputs[4], dimension) - reach;
    const auto positions = room / element(inputs[3], dimension) + 1;
    numbers *= static_cast<double>(positions);
  }
  return numbers;
}

// input, weight, bias, stride, padding, dilation, transposed, ...
double convolution(OperatorInputs inputs) {
  const bool is_transposed = inputs[6].toBool();
  const double numbers = is_transposed ? static_cast<double>(inputs[0].toTensor().numel()) : output_elements(inputs);
  return forward_convolution(numbers, inputs[1].toTensor());
}

// grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask:
// the gradients of input and of weight each cost as much as the forward pass.
double convolution_backward(OperatorInputs inputs) {
  const bool is_transposed = inputs[7].toBool();
  const auto numbers = static_cast<double>(inputs[is_transposed ? 1 : 0].toTensor().numel());
  const auto wanted = inputs[10].toBoolList();
  return (wanted.get(0) + wanted.get(1)) * forward_convolution(numbers, inputs[2].toTensor());
}

// The product of queries and keys, and the product of the scores and the values.
double attention_over(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  const auto numbers = static_cast<double>(query.numel());
  const auto width = static_cast<double>(std::max<std::int64_t>(query.size(-1), 1));
  return 2 * numbers * static_cast<double>(key.size(-2)) * (1 + static_cast<double>(value.size(-1)) / width);
}

double attention(OperatorInputs inputs) {
  return attention_over(inputs[0].toTensor(), inputs[1].toTensor(), inputs[2].toTensor());
}
// Two gradients for each product; the recomputation of scores in kernels is not counted.
double attention_backward(OperatorInputs inputs) {
  return 2 * attention_over(inputs[1].toTensor(), inputs[2].toTensor(), inputs[3].toTensor());
}

struct Rule {
  std::string_view name;
  double (*count)(OperatorInputs);
};

constexpr std::array rules = {
    Rule{"aten::mm", first_two},
    Rule{"aten::bmm", first_two},
    Rule{"aten::mv", first_two},
    Rule{"aten::addmm", second_two},
    Rule{"aten::addmv", second_two},
    Rule{"aten::baddbmm", second_two},
    Rule{"aten::addbmm", second_two},
    Rule{"aten::_addmm_activation", second_two},
    Rule{"aten::convolution", convolution},
    Rule{"aten::convolution_backward", convolution_backward},
    Rule{"aten::_scaled_dot_product_flash_attention", attention},
    Rule{"aten::_scaled_dot_product_flash_attention_for_cpu", attention},
    Rule{"aten::_scaled_dot_product_efficient_attention", attention},
    Rule{"aten::_scaled_dot_product_cudnn_attention", attention},
    Rule{"aten::_scaled_dot_product_flash_attention_backward", attention_backward},
    Rule{"aten::_scaled_dot_product_flash_attention_for_cpu_backward", attention_backward},
    Rule{"aten::_scaled_dot_product_efficient_attention_backward", attention_backward},
    Rule{"aten::_scaled_dot_product_cudnn_attention_backward", attention_backward},
};

const Rule* rule_of(std::string_view name) {
  const auto* found = std::ranges::find_if(rules, [&](const Rule& rule) { return rule.name == name; });
  return found == rules.end() ? nullptr : found;
}

// A global: LibTorch calls plain functions, also on the threads of backward passes.
std::atomic<double> flops_so_far = 0;
// Operators call other operators: those within a counted operator are not counted again.
thread_local int depth = 0;

std::unique_ptr<at::ObserverContext> begin_operator(const at::RecordFunction& call) {
  const auto* rule = rule_of(call.name());
  if (rule != nullptr && depth++ == 0) flops_so_far.fetch_add(rule->count(call.inputs()));
  return nullptr;
}

void end_operator(const at::RecordFunction& call, at::ObserverContext* /*none*/) {
  if (rule_of(call.name()) != nullptr) --depth;
}

}  // namespace

FlopCounter::FlopCounter() {
  flops_so_far = 0;
  handle_ = at::addThreadLocalCallback(
      at::RecordFunctionCallback(begin_operator, end_operator).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
}

FlopCounter::~FlopCounter() { at::removeCallback(handle_); }

double FlopCounter::count() const { return flops_so_far; }

}  // namespace hortator::observe
