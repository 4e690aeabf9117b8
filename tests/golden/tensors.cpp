#include "tensors.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>

#include <array>
#include <cmath>
#include <hortator/error.hpp>
#include <limits>
#include <utility>

#include "base/text.hpp"

namespace hortator::golden {
namespace {

using nlohmann::json;

constexpr std::array<std::pair<const char*, at::ScalarType>, 10> types = {{{"float32", at::kFloat},
                                                                           {"float64", at::kDouble},
                                                                           {"float16", at::kHalf},
                                                                           {"bfloat16", at::kBFloat16},
                                                                           {"int64", at::kLong},
                                                                           {"int32", at::kInt},
                                                                           {"int16", at::kShort},
                                                                           {"int8", at::kChar},
                                                                           {"uint8", at::kByte},
                                                                           {"bool", at::kBool}}};

double number_of(const json& value) {
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  if (!value.is_string()) return value.get<double>();
  const auto words = value.get<std::string>();
  if (words == "nan") return std::numeric_limits<double>::quiet_NaN();
  return words == "-inf" ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
}

bool is_near(double ours, double theirs, double tolerance) {
  if (std::isnan(theirs)) return std::isnan(ours);
  return ours == theirs || std::abs(ours - theirs) <= tolerance * std::abs(theirs);
}

}  // namespace

at::ScalarType scalar_type(const std::string& name) {
  for (const auto& [known, type] : types) {
    if (name == known) return type;
  }
  throw Error({.what = "no type " + name + " is known"});
}

std::string name_of(at::ScalarType type) {
  for (const auto& [name, known] : types) {
    if (type == known) return name;
  }
  return c10::toString(type);
}

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
  if (ours.is_array() != theirs.is_array()) return text::concat(ours, " in place of ", theirs);
  if (!ours.is_array()) {
    if (is_near(number_of(ours), number_of(theirs), tolerance)) return "";
    return text::concat(ours, " in place of ", theirs);
  }
  if (ours.size() != theirs.size()) return text::concat(ours.size(), " elements in place of ", theirs.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const auto inner = difference(ours[i], theirs[i], tolerance);
    if (!inner.empty()) return text::concat("[", i, "]", inner[0] == '[' ? "" : ": ", inner);
  }
  return "";
}

}  // namespace hortator::golden
