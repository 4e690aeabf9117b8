#include "tensors.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>

#include <cmath>
#include <hortator/error.hpp>
#include <limits>

#include "core/text/text.hpp"
#include "formats/torch/pickle/types.hpp"

namespace hortator::golden {
namespace {

using nlohmann::json;

double number_of(const json& value) {
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  if (!value.is_string()) return value.get<double>();
  const auto name = value.get<std::string>();
  if (name == "nan") return std::numeric_limits<double>::quiet_NaN();
  return name == "-inf" ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
}

bool is_near(double ours, double theirs, double tolerance) {
  if (std::isnan(theirs)) return std::isnan(ours);
  if (!std::isfinite(ours) || !std::isfinite(theirs)) return ours == theirs;
  return std::abs(ours - theirs) <= tolerance * std::abs(theirs);
}

}  // namespace

at::ScalarType scalar_type(const std::string& name) {
  const auto type = formats::torch_type_named("torch." + name);
  if (!type) throw Error({.what = "Unknown type '" + name + "'"});
  return *type;
}

std::string name_of(at::ScalarType type) { return std::string(formats::torch_name(type)); }

at::Tensor to_tensor(const json& values, at::ScalarType type) {
  if (values.is_number_integer()) return at::scalar_tensor(values.get<std::int64_t>(), type);
  if (!values.is_array()) return at::scalar_tensor(number_of(values), type);
  if (values.empty()) return at::empty({0}, type);
  std::vector<at::Tensor> rows;
  for (const auto& row : values) rows.push_back(to_tensor(row, type));
  return at::stack(rows);
}

json to_lists(const at::Tensor& tensor) {
  if (tensor.dim() == 0) {
    if (tensor.scalar_type() == at::kBool) return tensor.item<bool>();
    if (!at::isFloatingType(tensor.scalar_type())) return tensor.item<std::int64_t>();
    return tensor.item<double>();
  }
  auto lists = json::array();
  for (std::int64_t i = 0; i < tensor.size(0); ++i) lists.push_back(to_lists(tensor[i]));
  return lists;
}

std::string difference(const json& ours, const json& theirs, double tolerance) {
  if (ours.is_array() != theirs.is_array()) return text::concat("expected ", theirs, ", got ", ours);
  if (!ours.is_array()) {
    const bool are_whole = ours.is_number_integer() && theirs.is_number_integer();
    if (are_whole ? ours == theirs : is_near(number_of(ours), number_of(theirs), tolerance)) return "";
    return text::concat("expected ", theirs, ", got ", ours);
  }
  if (ours.size() != theirs.size()) return text::concat("expected ", theirs.size(), " elements, got ", ours.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const auto inner = difference(ours[i], theirs[i], tolerance);
    if (!inner.empty()) return text::concat("[", i, "]", inner[0] == '[' ? "" : ": ", inner);
  }
  return "";
}

}  // namespace hortator::golden
