#pragma once

#include <c10/core/ScalarType.h>
#include <hortator/hortator.h>

#include <optional>

namespace hortator::detail {

/// LibTorch's name of a type of C arrays; nothing for a value that is none.
constexpr std::optional<at::ScalarType> scalar_type_of(hortator_type type) {
  switch (type) {
    case HORTATOR_F32:
      return at::kFloat;
    case HORTATOR_F64:
      return at::kDouble;
    case HORTATOR_I32:
      return at::kInt;
    case HORTATOR_I64:
      return at::kLong;
    case HORTATOR_U8:
      return at::kByte;
    case HORTATOR_BOOL:
      return at::kBool;
    case HORTATOR_C64:
      return at::kComplexFloat;
    case HORTATOR_C128:
      return at::kComplexDouble;
    case HORTATOR_I8:
      return at::kChar;
  }
  return {};
}

}  // namespace hortator::detail
