#include "exported/run/input_check.hpp"

#include <hortator/error.hpp>
#include <utility>

#include "core/text/text.hpp"
#include "formats/tensor/tensor_spec.hpp"

namespace hortator::exported {
namespace {

constexpr auto export_again = "export the model with dynamic_shapes for this dimension, or give it such a tensor";

bool are_alike(at::ScalarType a, at::ScalarType b) {
  return a == b || (c10::isFloatingType(a) && c10::isFloatingType(b)) ||
         (c10::isComplexType(a) && c10::isComplexType(b));
}

std::string sizes_text(const InputShape& shape) {
  std::vector<std::string> sizes;
  for (const auto& size : shape.sizes) sizes.push_back(size.to_string());
  return text::concat("[", text::join(sizes), "]");
}

}  // namespace

InputCheck::InputCheck(const Program& program, const std::vector<std::string>& names) : ranges_(program.ranges) {
  for (const auto& input : program.inputs) {
    if (input.kind == InputSpec::Kind::user)
      inputs_.push_back({.name = names.at(inputs_.size()), .shape = input.shape});
  }
}

std::vector<std::string> InputCheck::expected_names() const {
  std::vector<std::string> names;
  for (const auto& input : inputs_) names.push_back(text::quote(input.name));
  return names;
}

void InputCheck::require_allowed(const std::vector<at::Tensor>& inputs) const {
  if (inputs.size() != inputs_.size()) {
    throw UsageError({.what = text::concat("The exported model takes ", text::count(std::ssize(inputs_), "tensor"),
                                           ", got ", inputs.size()),
                      .hint = text::concat("expected are ", text::join(expected_names()), ", in this order")});
  }
  Symbols symbols;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined())
      throw UsageError({.what = text::concat("Input ", text::quote(inputs_[i].name), " is an undefined tensor")});
    require_shape(inputs_[i], inputs[i], symbols);
  }
}

void InputCheck::require_shape(const Input& input, const at::Tensor& tensor, Symbols& symbols) const {
  if (!input.shape) {
    if (tensor.numel() == 1) return;
    throw UsageError({.what = text::concat("Input ", text::quote(input.name), " is a number, got a tensor of ",
                                           tensor.numel(), " elements")});
  }
  const auto& shape = *input.shape;
  if (tensor.dim() != std::ssize(shape.sizes) || !are_alike(tensor.scalar_type(), shape.type)) {
    throw UsageError(
        {.what = text::concat("Input ", text::quote(input.name), ": expected a tensor ", formats::type_name(shape.type),
                              " ", sizes_text(shape), ", got ", formats::to_string(formats::spec_of(tensor)))});
  }
  for (std::size_t i = 0; i < shape.sizes.size(); ++i)
    require_size(input, i, tensor.size(static_cast<std::int64_t>(i)), symbols);
}

void InputCheck::require_size(const Input& input, std::size_t dimension, std::int64_t size, Symbols& symbols) const {
  const auto& allowed = input.shape->sizes[dimension];
  const auto fail = [&](const std::string& expected) {
    throw UsageError({.what = text::concat("Input ", text::quote(input.name), ": dimension ", dimension, " has size ",
                                           size, ", and the model was exported for ", expected),
                      .why = "the graph holds what the exporter derived from sizes",
                      .hint = export_again});
  };
  const auto before = symbols;
  if (!allowed.unify(size, symbols)) {
    const auto value = allowed.evaluate(before);
    fail(allowed.to_string() +
         (value && allowed.to_string() != std::to_string(*value) ? text::concat(", which is ", *value, " here") : ""));
  }
  const auto range = ranges_.find(allowed.to_string());
  if (range == ranges_.end()) return;
  // The exporter writes 2 as the smallest size of every dynamic dimension; its graphs are right for 0 and 1 as well.
  constexpr std::int64_t smallest_by_default = 2;
  if (range->second.min && *range->second.min > smallest_by_default && size < *range->second.min)
    fail(text::concat(range->first, " from ", *range->second.min, " on"));
  if (range->second.max && size > *range->second.max) fail(text::concat(range->first, " up to ", *range->second.max));
}

}  // namespace hortator::exported
