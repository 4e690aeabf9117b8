#pragma once

#include <c10/core/ScalarType.h>

#include <optional>
#include <string_view>

/// What pickles of PyTorch's call the types of elements.
namespace hortator::formats {

/// The class of a storage: "torch.FloatStorage". The newer types have none: their tensors lie in an UntypedStorage, and
/// say their own type.
struct StorageClass {
  std::string_view name;
  at::ScalarType type;
};

constexpr std::string_view untyped_storage = "torch.storage.UntypedStorage";

std::optional<at::ScalarType> type_of_storage(std::string_view name);
/// The other way round; empty for those that have none.
std::string_view storage_of_type(at::ScalarType type);

/// "torch.float8_e4m3fn"
std::optional<at::ScalarType> torch_type_named(std::string_view name);
/// The other way round, "float8_e4m3fn"; empty for what cannot be stored.
std::string_view torch_name(at::ScalarType type);

}  // namespace hortator::formats
