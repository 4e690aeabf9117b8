#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <hortator/bigmodel/module_tensors.hpp>
#include <hortator/error.hpp>
#include <map>

#include "bigmodel/module_tree.hpp"
#include "core/text/text.hpp"
#include "formats/tensor/tensor_spec.hpp"
#include "interception/weight_operators.hpp"
#include "paging/deferred/construction_scope.hpp"
#include "weights/module_weights.hpp"

namespace hortator {
namespace {

const weights::ModuleWeight& find(const std::vector<weights::ModuleWeight>& all, const std::string& name) {
  const auto found = std::ranges::find(all, name, &weights::ModuleWeight::name);
  if (found != all.end()) return *found;
  std::vector<std::string> names;
  for (const auto& one : all) names.push_back(one.name);
  throw UsageError({.what = text::concat("The module has no parameter or buffer ", text::quote(name)),
                    .hint = text::suggestion(name, names)});
}

void require_shape(const weights::ModuleWeight& one, const at::Tensor& value) {
  if (value.sizes() == one.tensor.sizes()) return;
  throw UsageError({.what = text::concat("The value for ", text::quote(one.name), " is ",
                                         formats::to_string(formats::spec_of(value)), ", the module has ",
                                         formats::to_string(formats::spec_of(one.tensor))),
                    .hint = "give a value of the same shape"});
}

at::Tensor values_of(const weights::ModuleWeight& one) {
  if (!one.tensor.is_meta() && !paging::lacks_memory(one.tensor)) return one.tensor;
  throw UsageError({.what = text::concat("The tensor ", text::quote(one.name), " has no values"),
                    .why = "the module was made without them (init_empty_weights), or has lost them",
                    .hint = "give them: set_module_tensor_to_device(module, name, device, {.value = ...})"});
}

/// A tensor of the same shape without values.
at::Tensor absent_like(const weights::ModuleWeight& one, at::ScalarType type) {
  auto absent = at::empty_strided(one.tensor.sizes(), one.tensor.strides(), at::TensorOptions(type));
  paging::drop_values(absent, text::concat("The tensor ", text::quote(one.name), " has no values: it was set to meta"));
  return absent;
}

}  // namespace

Bytes dtype_byte_size(at::ScalarType type) { return bigmodel::element_bytes(type); }

std::vector<std::vector<std::string>> find_tied_parameters(const torch::nn::Module& module) {
  const auto all = weights::weights_of(module);
  std::map<std::size_t, std::vector<std::string>> by_first;
  for (const auto& one : all) by_first[one.first].push_back(one.name);
  std::vector<std::vector<std::string>> groups;
  for (auto& [first, names] : by_first) {
    if (names.size() < 2) continue;
    std::ranges::sort(names);
    groups.push_back(std::move(names));
  }
  std::ranges::sort(groups);
  return groups;
}

void set_module_tensor_to_device(torch::nn::Module& module, const std::string& name, c10::Device device,
                                 const SetTensorOptions& options) {
  const at::NoGradGuard no_grad;
  const auto all = weights::weights_of(module);
  const auto& one = find(all, name);
  if (options.value.defined()) require_shape(one, options.value);
  paging::settle(one.tensor);
  const auto type = options.dtype.value_or(one.tensor.scalar_type());
  const auto placed = [&] {
    const auto values = (options.value.defined() ? options.value : values_of(one)).detach();
    return values.to(device, type, /*non_blocking=*/false, /*copy=*/options.value.defined());
  };
  const auto moved = device.is_meta() ? absent_like(one, type) : placed();
  for (const auto& other : all) {
    if (other.first == one.first) other.tensor.set_data(moved);
  }
  interception::refresh_weights();
}

}  // namespace hortator
