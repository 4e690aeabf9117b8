#include "formats/torch/pickle/types.hpp"

#include <algorithm>
#include <array>

#include "formats/tensor/tensor_spec.hpp"

namespace hortator::formats {
namespace {

constexpr std::array classes = {
    StorageClass{"torch.DoubleStorage", at::kDouble},
    StorageClass{"torch.FloatStorage", at::kFloat},
    StorageClass{"torch.HalfStorage", at::kHalf},
    StorageClass{"torch.BFloat16Storage", at::kBFloat16},
    StorageClass{"torch.LongStorage", at::kLong},
    StorageClass{"torch.IntStorage", at::kInt},
    StorageClass{"torch.ShortStorage", at::kShort},
    StorageClass{"torch.CharStorage", at::kChar},
    StorageClass{"torch.ByteStorage", at::kByte},
    StorageClass{"torch.BoolStorage", at::kBool},
    StorageClass{"torch.ComplexDoubleStorage", at::kComplexDouble},
    StorageClass{"torch.ComplexFloatStorage", at::kComplexFloat},
};

/// Types that checkpoints do not have.
struct Rare {
  std::string_view name;
  at::ScalarType type;
};
constexpr std::array rare = {
    Rare{"float8_e8m0fnu", at::ScalarType::Float8_e8m0fnu},
    Rare{"float4_e2m1fn_x2", at::ScalarType::Float4_e2m1fn_x2},
};

}  // namespace

std::optional<at::ScalarType> type_of_storage(std::string_view name) {
  const auto* known = std::ranges::find(classes, name, &StorageClass::name);
  return known != classes.end() ? std::optional(known->type) : std::nullopt;
}

std::string_view storage_of_type(at::ScalarType type) {
  const auto* known = std::ranges::find(classes, type, &StorageClass::type);
  return known != classes.end() ? known->name : "";
}

std::optional<at::ScalarType> torch_type_named(std::string_view name) {
  constexpr std::string_view module = "torch.";
  if (!name.starts_with(module)) return std::nullopt;
  name.remove_prefix(module.size());
  const auto* known = std::ranges::find(rare, name, &Rare::name);
  return known != rare.end() ? known->type : type_named(name);
}

std::string_view torch_name(at::ScalarType type) {
  const auto* known = std::ranges::find(rare, type, &Rare::type);
  return known != rare.end() ? known->name : type_name(type);
}

}  // namespace hortator::formats
