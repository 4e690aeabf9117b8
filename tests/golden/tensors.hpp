#pragma once

#include <ATen/core/Tensor.h>

#include <nlohmann/json.hpp>
#include <string>

/// Tensors as golden files write them: nested lists of numbers, with the type's name in Python.
namespace hortator::golden {

at::ScalarType scalar_type(const std::string& name);
std::string name_of(at::ScalarType type);

at::Tensor to_tensor(const nlohmann::json& values, at::ScalarType type);
nlohmann::json to_lists(const at::Tensor& tensor);

/// Empty, or the first difference of nested lists: floating-point numbers may differ by `tolerance`, relative.
std::string difference(const nlohmann::json& ours, const nlohmann::json& theirs, double tolerance);

}  // namespace hortator::golden
