#include "simulation/bound_array.hpp"

#include <ATen/ops/from_blob.h>
#include <c10/util/safe_numerics.h>

#include <array>
#include <hortator/detail/array_types.hpp>
#include <hortator/error.hpp>
#include <limits>
#include <optional>
#include <vector>

#include "core/text/text.hpp"

namespace hortator::simulation {
namespace {

constexpr int max_dims = 15;

void require_sizes(const hortator_array& array) {
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
}

void require_strides(const hortator_array& array) {
  for (int i = 0; array.stride != nullptr && i < array.rank; ++i) {
    if (array.stride[i] >= 0) continue;
    throw UsageError({.what = text::concat("Dimension ", i, " of an array has the stride ", array.stride[i]),
                      .why = "LibTorch has no negative strides",
                      .hint = "pass the elements in their order in memory"});
  }
}

c10::Device device_of(const hortator_array& array, c10::Device device) {
  if (array.memory == HORTATOR_HOST) return at::kCPU;
  if (array.memory != HORTATOR_DEVICE) {
    throw UsageError({.what = text::concat("An array is in the unknown memory ", static_cast<int>(array.memory)),
                      .hint = "use HORTATOR_HOST or HORTATOR_DEVICE"});
  }
  if (!device.is_cpu()) return device;
  throw UsageError(
      {.what = "An array is on a device, and the run computes on CPUs",
       .hint = "bind the copy of the array in the host's memory, or run without cpu: true on ranks with a GPU"});
}

at::ScalarType type_of(const hortator_array& array) {
  if (const auto type = detail::scalar_type_of(array.type)) return *type;
  if (array.type == 0) {
    throw UsageError({.what = "An array has no type", .hint = "set hortator_array.type, for example to HORTATOR_F64"});
  }
  throw UsageError({.what = text::concat("An array has the unknown type ", static_cast<int>(array.type)),
                    .hint = "use 32-bit or 64-bit numbers, bytes, C booleans or complex numbers"});
}

void require_data(const hortator_array& array, const std::vector<std::int64_t>& shape) {
  std::uint64_t elements = 0;
  if (c10::safe_multiplies_u64(shape, &elements) || elements > std::numeric_limits<std::int64_t>::max()) {
    throw UsageError({.what = text::concat("An array of the shape [", text::join(shape), "] has too many elements"),
                      .hint = "pass the sizes of its dimensions, not their addresses"});
  }
  if (array.data == nullptr && elements > 0) {
    throw UsageError({.what = text::concat("An array of the shape [", text::join(shape), "] has no data"),
                      .hint = "allocate it before it is bound"});
  }
}

}  // namespace

at::Tensor bound_tensor(const hortator_array* array, c10::Device device) {
  if (array == nullptr) throw UsageError({.what = "An array is NULL"});
  require_sizes(*array);
  require_strides(*array);
  const std::vector<std::int64_t> shape(array->shape, array->shape + array->rank);
  const auto options = at::TensorOptions().dtype(type_of(*array)).device(device_of(*array, device));
  require_data(*array, shape);
  at::OptionalIntArrayRef strides;
  if (array->stride != nullptr) strides = at::IntArrayRef(array->stride, static_cast<std::size_t>(array->rank));
  return at::for_blob(const_cast<void*>(array->data), shape)
      .strides(strides)
      .options(options)
      .target_device(options.device())
      .make_tensor();
}

}  // namespace hortator::simulation
