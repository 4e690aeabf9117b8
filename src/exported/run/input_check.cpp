#include "exported/run/input_check.hpp"

#include <hortator/error.hpp>
#include <utility>

#include "core/text/text.hpp"
#include "exported/graph/guard.hpp"
#include "formats/tensor/tensor_spec.hpp"

namespace hortator::exported {
namespace {

constexpr auto export_again = "export the model with dynamic_shapes for this dimension, or give it such a tensor";

bool are_alike(at::ScalarType a, at::ScalarType b) {
  return a == b || (c10::isFloatingType(a) && c10::isFloatingType(b)) ||
         (c10::isComplexType(a) && c10::isComplexType(b));
}

}  // namespace

InputCheck::InputCheck(const Program& program, const std::vector<std::string>& names) : guards_(program.guards) {
  std::size_t place = 0;  // among all inputs in Python, constants included
  for (const auto& given : program.inputs) {
    if (given.kind == InputSpec::Kind::fixed) ++place;
    if (given.kind != InputSpec::Kind::user) continue;
    const auto& name = names.at(inputs_.size());
    places_.emplace(name, inputs_.size());
    places_.emplace(text::concat("flat_args.", place++), inputs_.size());  // of exports that are strict
    auto& input = inputs_.emplace_back(Input{.name = name});
    if (given.shape) input.type = given.shape->type;
    for (const auto& size : given.shape ? given.shape->sizes : std::vector<Expression>{given.number.value()}) {
      const auto range = program.ranges.find(size.to_string());
      input.shape.push_back(
          {.size = size, .range = range == program.ranges.end() ? std::nullopt : std::optional(range->second)});
    }
  }
}

std::string InputCheck::shape_text(const Input& input) {
  std::vector<std::string> sizes;
  for (const auto& dimension : input.shape) sizes.push_back(dimension.size.to_string());
  return text::concat("[", text::join(sizes), "]");
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
  require_guards(inputs);
}

std::optional<std::int64_t> InputCheck::guarded(const std::vector<at::Tensor>& inputs, const std::string& path,
                                                std::optional<std::int64_t> dimension) const {
  const auto found = places_.find(path);
  if (found == places_.end()) return {};
  const auto& tensor = inputs[found->second];
  if (dimension) return *dimension < tensor.dim() ? std::optional(tensor.size(*dimension)) : std::nullopt;
  const bool is_whole_number = !inputs_[found->second].type && c10::isIntegralType(tensor.scalar_type(), true);
  return is_whole_number ? std::optional(tensor.item<std::int64_t>()) : std::nullopt;
}

void InputCheck::require_guards(const std::vector<at::Tensor>& inputs) const {
  const GuardedValue value = [&](const std::string& path, std::optional<std::int64_t> dimension) {
    return guarded(inputs, path, dimension);
  };
  for (const auto& guard : guards_) {
    if (may_hold(guard, value)) continue;
    throw UsageError({.what = "The model was not exported for inputs of these sizes: it needs " + guard,
                      .why = "the graph holds what the exporter derived from sizes",
                      .hint = export_again});
  }
}

void InputCheck::require_shape(const Input& input, const at::Tensor& tensor, Symbols& symbols) const {
  if (!input.type) {
    const bool is_whole_number = c10::isIntegralType(tensor.scalar_type(), true);
    if (tensor.numel() == 1 && is_whole_number) require_size(input, 0, tensor.item<std::int64_t>(), symbols);
    if (tensor.numel() == 1) return;
    throw UsageError({.what = text::concat("Input ", text::quote(input.name), " is a number, got a tensor of ",
                                           tensor.numel(), " elements")});
  }
  if (tensor.dim() != std::ssize(input.shape) || !are_alike(tensor.scalar_type(), *input.type)) {
    throw UsageError({.what = text::concat("Input ", text::quote(input.name), ": expected a tensor ",
                                           formats::type_name(*input.type), " ", shape_text(input), ", got ",
                                           formats::to_string(formats::spec_of(tensor)))});
  }
  for (std::size_t i = 0; i < input.shape.size(); ++i)
    require_size(input, i, tensor.size(static_cast<std::int64_t>(i)), symbols);
}

void InputCheck::require_size(const Input& input, std::size_t dimension, std::int64_t size, Symbols& symbols) const {
  const auto& [allowed, range] = input.shape[dimension];
  const auto fail = [&](const std::string& expected) {
    const auto found =
        input.type ? text::concat(": dimension ", dimension, " has size ", size) : text::concat(" is ", size);
    throw UsageError(
        {.what = text::concat("Input ", text::quote(input.name), found, ", and the model was exported for ", expected),
         .why = "the graph holds what the exporter derived from sizes",
         .hint = export_again});
  };
  if (const auto known = allowed.evaluate(symbols)) {
    if (*known != size)
      fail(allowed.is_number() ? allowed.to_string()
                               : text::concat(allowed.to_string(), ", which is ", *known, " here"));
  } else if (!allowed.unify(size, symbols)) {
    fail(allowed.to_string());
  }
  if (!range) return;
  // The exporter writes 2 as the smallest size of every dynamic dimension; its graphs are right for 0 and 1 as well.
  constexpr std::int64_t smallest_by_default = 2;
  if (range->min && *range->min > smallest_by_default && size < *range->min)
    fail(text::concat(allowed.to_string(), " from ", *range->min, " on"));
  if (range->max && size > *range->max) fail(text::concat(allowed.to_string(), " up to ", *range->max));
}

}  // namespace hortator::exported
