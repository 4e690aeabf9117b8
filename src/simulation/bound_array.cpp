#include "simulation/bound_array.hpp"

#include <ATen/ops/from_blob.h>

#include <array>
#include <hortator/error.hpp>
#include <optional>
#include <vector>

#include "core/text/text.hpp"

namespace hortator::simulation {
namespace {

constexpr int max_dims = 15;

std::optional<at::ScalarType> scalar_type_of(hortator_type type) {
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

void require_shape(const hortator_array& array) {
  if (array.rank < 0 || array.rank > max_dims || (array.rank > 0 && array.shape == nullptr)) {
    throw UsageError({.what = text::concat("An array has ", array.rank, " dimensions"),
                      .hint = text::concat("pass 0 to ", max_dims, " dimensions with their sizes")});
  }
  for (int i = 0; i < array.rank; ++i) {
    if (array.shape[i] >= 0) continue;
    throw UsageError({.what = text::concat("Dimension ", i, " of an array has the size ", array.shape[i]),
                      .why = "an assumed-size Fortran array does not know its last size",
                      .hint = "pass an array whose sizes are known, or a section of it"});
  }
  for (int i = 0; array.stride != nullptr && i < array.rank; ++i) {
    if (array.stride[i] >= 0) continue;
    throw UsageError({.what = text::concat("Dimension ", i, " of an array has the stride ", array.stride[i]),
                      .why = "LibTorch has no negative strides",
                      .hint = "pass the elements in their order in memory"});
  }
}

}  // namespace

at::Tensor bound_tensor(const hortator_array* array) {
  if (array == nullptr) throw UsageError({.what = "An array is NULL"});
  require_shape(*array);
  const auto type = scalar_type_of(array->type);
  if (!type) {
    throw UsageError({.what = text::concat("An array has the unknown type ", static_cast<int>(array->type)),
                      .hint = "use 32-bit or 64-bit numbers, bytes, C booleans or complex numbers"});
  }
  const std::vector<std::int64_t> shape(array->shape, array->shape + array->rank);
  const auto options = at::TensorOptions().dtype(*type);
  std::int64_t elements = 1;
  for (const auto size : shape) elements *= size;
  if (array->data == nullptr && elements > 0) {
    throw UsageError({.what = text::concat("An array of the shape [", text::join(shape), "] has no data"),
                      .hint = "allocate it before it is bound"});
  }
  if (array->stride == nullptr) return at::from_blob(array->data, shape, options);
  return at::from_blob(array->data, shape, std::vector<std::int64_t>(array->stride, array->stride + array->rank),
                       options);
}

}  // namespace hortator::simulation
