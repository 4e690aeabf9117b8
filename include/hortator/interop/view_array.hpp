#pragma once

#include <hortator/hortator.h>

#include <array>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

// Views of Kokkos, and of libraries with the same members, as arrays of the C interface. Needs neither Kokkos nor
// LibTorch.

namespace hortator {

/// An array in memory of any layout, as Kokkos::View: elements, sizes and distances in elements. The number of
/// dimensions is View::rank or View::rank().
template <typename View>
concept StridedView = requires(const View& view) {
  typename View::value_type;
  { view.data() } -> std::convertible_to<const void*>;
  { view.extent(0) } -> std::convertible_to<std::int64_t>;
  { view.stride(0) } -> std::convertible_to<std::int64_t>;
};

namespace detail {

template <typename View>
constexpr std::size_t view_rank() {
  if constexpr (requires { static_cast<std::size_t>(View::rank); }) {
    return static_cast<std::size_t>(View::rank);
  } else {
    return static_cast<std::size_t>(View::rank());
  }
}

/// std::complex, Kokkos::complex, thrust::complex: two numbers.
template <typename T>
concept PairOfNumbers = requires {
  typename T::value_type;
}
&&std::floating_point<typename T::value_type> && sizeof(T) == 2 * sizeof(typename T::value_type);

template <typename T>
constexpr hortator_type view_type() {
  if constexpr (PairOfNumbers<T>) {
    return sizeof(T) == 8 ? HORTATOR_C64 : HORTATOR_C128;
  } else if constexpr (std::floating_point<T>) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "floating-point numbers have 32 or 64 bits");
    return sizeof(T) == 4 ? HORTATOR_F32 : HORTATOR_F64;
  } else if constexpr (std::same_as<T, bool>) {
    return HORTATOR_BOOL;
  } else {
    static_assert(std::signed_integral<T> || sizeof(T) == 1, "unsigned integers have 8 bits");
    static_assert(std::integral<T> && sizeof(T) != 2, "expected numbers that LibTorch has");
    if constexpr (sizeof(T) == 1) return std::signed_integral<T> ? HORTATOR_I8 : HORTATOR_U8;
    return sizeof(T) == 4 ? HORTATOR_I32 : HORTATOR_I64;
  }
}

/// Whether the memory space is one of the host's by its name in Kokkos: "Host", "CudaHostPinned", "SYCLHostUSM", ... A
/// view without a memory space is in the host's memory.
template <typename View>
bool is_on_host() {
  if constexpr (requires { std::string_view(View::memory_space::name()); }) {
    const std::string_view name = View::memory_space::name();
    return name.find("Host") != std::string_view::npos;
  } else {
    return true;
  }
}

}  // namespace detail

/// The elements of a view, where they lie, as an array of the C interface: LibTorch sees view(i, j, ...) as [i, j,
/// ...], in any layout. No data is copied. The view's memory must stay as long as a batch or a run refers to the array;
/// the ViewArray itself may be destroyed after the call that binds it.
///
///     hortator_batch_add(batch, HORTATOR_INPUT, hortator::ViewArray(density));
template <StridedView View>
class ViewArray {
 public:
  /// `stream`: for memory on the device, the stream on which your code computes, by default the default stream.
  explicit ViewArray(const View& view, void* stream = nullptr) {
    for (std::size_t i = 0; i < rank; ++i) {
      shape_[i] = static_cast<std::int64_t>(view.extent(i));
      stride_[i] = static_cast<std::int64_t>(view.stride(i));
    }
    array_ = {.data = view.data(),
              .shape = shape_.data(),
              .stride = stride_.data(),
              .rank = static_cast<std::int32_t>(rank),
              .type = detail::view_type<std::remove_cv_t<typename View::value_type>>(),
              .memory = detail::is_on_host<View>() ? HORTATOR_HOST : HORTATOR_DEVICE,
              .stream = stream};
  }
  ViewArray(const ViewArray&) = delete;
  ViewArray& operator=(const ViewArray&) = delete;

  const hortator_array* get() const { return &array_; }
  operator const hortator_array*() const { return &array_; }

 private:
  static constexpr std::size_t rank = detail::view_rank<View>();

  std::array<std::int64_t, rank + 1> shape_{};
  std::array<std::int64_t, rank + 1> stride_{};
  hortator_array array_{};
};

}  // namespace hortator
