#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>

#include <hortator/detail/array_types.hpp>
#include <hortator/interop/view_array.hpp>
#include <vector>

namespace hortator {

/// The elements of a Kokkos::View, or of a view with the same members, as a tensor: view(i, j, ...) is [i, j, ...], in
/// any layout. No data is copied. The tensor holds a copy of the view, so that a view that counts references keeps its
/// memory. `device` is where views in device memory lie. A tensor of a view of const elements must not be written.
///
///     Kokkos::View<double**> density("density", cells, 3);
///     net->forward(hortator::view_tensor(density));
template <StridedView View>
at::Tensor view_tensor(const View& view, at::Device device = at::Device(at::kCUDA, 0)) {
  using Number = std::remove_cv_t<typename View::value_type>;
  constexpr auto type = *detail::scalar_type_of(detail::view_type<Number>());
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  for (std::size_t i = 0; i < detail::view_rank<View>(); ++i) {
    shape.push_back(static_cast<std::int64_t>(view.extent(i)));
    strides.push_back(static_cast<std::int64_t>(view.stride(i)));
  }
  const auto place = detail::is_on_host<View>() ? at::Device(at::kCPU) : device;
  auto* data = const_cast<Number*>(view.data());
  return at::from_blob(
      data, shape, strides, [view](void*) {}, at::TensorOptions().dtype(type).device(place), place);
}

}  // namespace hortator
