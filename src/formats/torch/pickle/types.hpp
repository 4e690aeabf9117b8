#pragma once

#include <c10/core/ScalarType.h>

#include <optional>
#include <string_view>

/// The names of element types in PyTorch's pickles.
namespace hortator::formats {

/// The class of a storage: "torch.FloatStorage". Newer types have none: their tensors have an UntypedStorage and name
/// their type.
struct StorageClass {
  std::string_view name;
  at::ScalarType type;
};

constexpr std::string_view untyped_storage = "torch.storage.UntypedStorage";

std::optional<at::ScalarType> type_of_storage(std::string_view name);
/// The inverse; empty for unknown classes.
std::string_view storage_of_type(at::ScalarType type);

/// "torch.float8_e4m3fn"
std::optional<at::ScalarType> torch_type_named(std::string_view name);
/// The inverse, from "float8_e4m3fn"; empty for types that cannot be stored.
std::string_view torch_name(at::ScalarType type);

}  // namespace hortator::formats
