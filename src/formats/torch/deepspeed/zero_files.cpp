#include "formats/torch/deepspeed/zero_files.hpp"

#include <algorithm>
#include <limits>
#include <string_view>

#include "core/text/text.hpp"
#include "formats/torch/pickle/machine.hpp"

namespace hortator::formats {
namespace {

[[noreturn]] void refuse_zero_file(std::string_view what) {
  throw PickleFault(text::concat("as a file of DeepSpeed, it ", what));
}

template <typename Content>
const Content& content_as(const PickleValue& value, std::string_view wanted) {
  if (const auto* content = std::get_if<Content>(&value.content)) return *content;
  refuse_zero_file(text::concat("holds ", value.described(), ", not ", wanted));
}

const PickleValue& zero_entry(const PickleValue& dict, std::string_view name) {
  if (const auto* found = dict.find(name)) return *found;
  refuse_zero_file(text::concat("has no ", text::quote(std::string(name))));
}

/// The value under a name; null if there is none, or None.
const PickleValue* zero_entry_if_any(const PickleValue& dict, std::string_view name) {
  const auto* found = dict.find(name);
  return found == nullptr || std::holds_alternative<std::nullptr_t>(found->content) ? nullptr : found;
}

std::int64_t zero_count(const PickleValue& value) {
  const auto count = content_as<std::int64_t>(value, "a whole number");
  if (count < 0) refuse_zero_file("holds a negative size");
  return count;
}

std::vector<std::int64_t> zero_shape(const PickleValue& value) {
  std::vector<std::int64_t> shape;
  for (const auto& item : content_as<PickleValue::Tuple>(value, "a shape").items) shape.push_back(zero_count(item));
  elements_of(shape);
  return shape;
}

std::vector<NamedShape> shapes_in(const PickleValue& value) {
  std::vector<NamedShape> shapes;
  for (const auto& [name, shape] : content_as<PickleValue::Dict>(value, "a dict of shapes"))
    shapes.emplace_back(content_as<std::string>(name, "a name"), zero_shape(shape));
  return shapes;
}

std::vector<NamedTensor> tensors_in(const PickleValue& value) {
  std::vector<NamedTensor> tensors;
  for (const auto& [name, tensor] : content_as<PickleValue::Dict>(value, "a dict of tensors"))
    tensors.emplace_back(content_as<std::string>(name, "a name"), content_as<PickledTensor>(tensor, "a tensor"));
  return tensors;
}

std::map<std::string, std::string> shared_in(const PickleValue& value) {
  std::map<std::string, std::string> shared;
  for (const auto& [name, first] : content_as<PickleValue::Dict>(value, "a dict of names"))
    shared.emplace(content_as<std::string>(name, "a name"), content_as<std::string>(first, "a name"));
  return shared;
}

/// An enum is an object whose class is called with its number.
std::int64_t stage_of(const PickleValue& value) {
  const auto* object = std::get_if<PickleValue::Foreign>(&value.content);
  const bool is_enum = object != nullptr && object->arguments.size() == 1;
  return zero_count(is_enum ? object->arguments.front() : value);
}

/// ZeRO 1 and 2 keep one number for each group of parameters, since experts have fewer copies.
std::int64_t ranks_in(const PickleValue& value) {
  const auto* list = std::get_if<PickleValue::List>(&value.content);
  if (list == nullptr) return zero_count(value);
  std::int64_t ranks = 0;
  for (const auto& item : *list) {
    if (ranks > 0 && zero_count(item) != ranks)
      refuse_zero_file("has groups of parameters on different numbers of ranks");
    ranks = zero_count(item);
  }
  return ranks;
}

std::vector<PickledTensor> arrays_in(const PickleValue& value) {
  std::vector<PickledTensor> arrays;
  for (const auto& item : content_as<PickleValue::List>(value, "a list of arrays")) {
    arrays.push_back(content_as<PickledTensor>(item, "an array"));
    if (arrays.back().spec.shape.size() != 1 || !arrays.back().is_row_major())
      refuse_zero_file("has an array that is not flat");
  }
  return arrays;
}

std::vector<std::vector<std::int64_t>> gaps_in(const PickleValue& value) {
  std::vector<std::vector<std::int64_t>> gaps;
  for (const auto& list : content_as<PickleValue::List>(value, "a list of paddings")) {
    auto& of_array = gaps.emplace_back();
    for (const auto& gap : content_as<PickleValue::List>(list, "a list of paddings"))
      of_array.push_back(zero_count(gap));
  }
  return gaps;
}

ZeroMoments moments_in(const PickleValue& value) {
  ZeroMoments moments;
  for (const auto& [key, item] : content_as<PickleValue::Dict>(value, "the optimizer's state of an array")) {
    const auto* tensor = std::get_if<PickledTensor>(&item.content);
    if (tensor == nullptr || tensor->spec.shape.empty()) {
      moments.values.emplace_back(key, item);
    } else if (tensor->spec.shape.size() == 1 && tensor->is_row_major()) {
      moments.arrays.emplace(content_as<std::string>(key, "a name"), *tensor);
    } else {
      refuse_zero_file("has moments that are not flat");
    }
  }
  return moments;
}

/// The states are numbered by arrays.
std::vector<ZeroMoments> all_moments_in(const PickleValue& state, std::size_t arrays) {
  const auto& dict = content_as<PickleValue::Dict>(state, "the optimizer's state");
  std::vector<ZeroMoments> all(dict.empty() ? 0 : arrays);
  for (const auto& [key, item] : dict) {
    const auto number = static_cast<std::size_t>(zero_count(key));
    if (number >= all.size()) refuse_zero_file("has moments of an array that it has not");
    all[number] = moments_in(item);
  }
  return all;
}

}  // namespace

std::int64_t elements_of(const std::vector<std::int64_t>& shape) {
  constexpr auto max_elements = std::numeric_limits<std::int64_t>::max() / 16;  // of the largest type
  std::int64_t elements = 1;
  for (const auto size : shape) {
    if (__builtin_mul_overflow(elements, size, &elements) || elements > max_elements)
      refuse_zero_file("holds a tensor of more elements than memory has");
  }
  return elements;
}

ZeroModel parse_zero_model(const PickleValue& value) {
  ZeroModel model;
  model.module = tensors_in(zero_entry(value, "module"));
  if (const auto* shapes = zero_entry_if_any(value, "param_shapes")) {
    for (const auto& group : content_as<PickleValue::List>(*shapes, "a list of groups"))
      model.trained.push_back(shapes_in(group));
  }
  if (const auto* frozen = zero_entry_if_any(value, "frozen_param_shapes")) model.frozen = shapes_in(*frozen);
  if (const auto* parts = zero_entry_if_any(value, "frozen_param_fragments")) {
    for (auto& [name, tensor] : tensors_in(*parts)) model.frozen_parts.emplace(name, std::move(tensor));
  }
  if (const auto* shared = zero_entry_if_any(value, "shared_params")) model.shared = shared_in(*shared);
  if (const auto* buffers = zero_entry_if_any(value, "buffer_names")) {
    for (const auto& name : content_as<PickleValue::List>(*buffers, "a list of names"))
      model.buffers.insert(content_as<std::string>(name, "a name"));
  }
  return model;
}

ZeroArrays parse_zero_arrays(const PickleValue& value) {
  const auto& state = zero_entry(value, "optimizer_state_dict");
  const auto* stage = zero_entry_if_any(state, "zero_stage");  // the optimizer for bfloat16, of stage 1, writes none
  ZeroArrays arrays{.stage = stage != nullptr ? stage_of(*stage) : 1,
                    .ranks = ranks_in(zero_entry(state, "partition_count"))};
  if (arrays.stage < 1 || arrays.stage > 3) refuse_zero_file(text::concat("is of ZeRO's stage ", arrays.stage));
  const bool is_third = arrays.stage == 3;
  arrays.masters = arrays_in(zero_entry(state, is_third ? "fp32_flat_groups" : "single_partition_of_fp32_groups"));
  if (const auto* gaps = zero_entry_if_any(state, "param_alignment_paddings")) arrays.gaps = gaps_in(*gaps);
  const auto& inner = zero_entry(state, is_third ? "optimizer_state_dict" : "base_optimizer_state");
  arrays.is_elastic = std::holds_alternative<PickleValue::List>(inner.content);
  if (arrays.is_elastic) return arrays;
  arrays.moments = all_moments_in(zero_entry(inner, "state"), arrays.masters.size());
  arrays.groups = content_as<PickleValue::List>(zero_entry(inner, "param_groups"), "a list of groups");
  return arrays;
}

}  // namespace hortator::formats
