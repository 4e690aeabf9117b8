#pragma once

#include <ATen/core/Tensor.h>

#include <nlohmann/json.hpp>
#include <string>

/// Tensors in golden files: nested lists of numbers, with Python's name of the type.
namespace hortator::golden {

at::ScalarType scalar_type(const std::string& name);
std::string name_of(at::ScalarType type);

at::Tensor to_tensor(const nlohmann::json& values, at::ScalarType type);
nlohmann::json to_lists(const at::Tensor& tensor);

/// Returns the first difference of nested lists, or nothing. Floating-point numbers may differ by the relative
/// `tolerance`.
std::string difference(const nlohmann::json& ours, const nlohmann::json& theirs, double tolerance);

}  // namespace hortator::golden
