#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "comm/kernels/half_floats.hpp"
#include "comm/kernels/reduce_kernels.hpp"

/// The loops, included by one file for each instruction set. Internal linkage throughout: the linker must never take
/// the loops of one file for another's.
namespace hortator::comm::kernels {
namespace {

// Integers wrap around, as in MPI and LibTorch; in C++ signed ones must not overflow.
struct Sum {
  template <typename T>
  static T apply(T a, T b) {
    if constexpr (std::is_same_v<T, bool>)
      return a || b;
    else if constexpr (std::is_integral_v<T>)
      return static_cast<T>(std::uint64_t(a) + std::uint64_t(b));
    else
      return a + b;
  }
};
struct Product {
  template <typename T>
  static T apply(T a, T b) {
    if constexpr (std::is_same_v<T, bool>)
      return a && b;
    else if constexpr (std::is_integral_v<T>)
      return static_cast<T>(std::uint64_t(a) * std::uint64_t(b));
    else
      return a * b;
  }
};
// A NaN of any rank propagates to the result.
struct Max {
  template <typename T>
  static T apply(T a, T b) {
    return a > b || a != a ? a : b;
  }
};
struct Min {
  template <typename T>
  static T apply(T a, T b) {
    return a < b || a != a ? a : b;
  }
};

// Sums of this many bytes stay in registers. Longer ones, in the first-level cache, are for what is summed in a wider
// type, and for many arrays: the processor would not see that each of these is read in order.
constexpr std::size_t short_chunk_bytes = 256;
constexpr std::size_t long_chunk_bytes = 8192;
constexpr std::size_t few_inputs = 8;

template <typename T>
constexpr bool is_narrow = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

template <typename T>
using Accumulator = std::conditional_t<is_narrow<T>, float, T>;

// Memory holds the elements as bytes that others wrote: C++ objects of their type as far as every compiler cares.
template <typename T>
const T* elements_at(const std::byte* begin, std::size_t index) {
  return reinterpret_cast<const T*>(begin) + index;
}
template <typename T>
T* elements_at(std::byte* begin, std::size_t index) {
  return reinterpret_cast<T*>(begin) + index;
}

template <typename T>
void load(const T* in, Accumulator<T>* sum, std::size_t count) {
  if constexpr (is_narrow<T>)
    widen_all(in, sum, count);
  else
    std::memcpy(static_cast<void*>(sum), in, count * sizeof(T));
}

template <typename Op, typename T>
void combine(const T* in, Accumulator<T>* sum, std::size_t count) {
  if constexpr (is_narrow<T>) {
    float wide[long_chunk_bytes / sizeof(float)];
    widen_all(in, wide, count);
    for (std::size_t i = 0; i < count; ++i) sum[i] = Op::apply(sum[i], wide[i]);
  } else {
    for (std::size_t i = 0; i < count; ++i) sum[i] = Op::apply(sum[i], in[i]);
  }
}

template <typename T>
void store(const Accumulator<T>* sum, T* out, std::size_t count) {
  if constexpr (is_narrow<T>)
    narrow_all(sum, out, count);
  else
    std::memcpy(static_cast<void*>(out), sum, count * sizeof(T));
}

template <typename T>
void divide(T* sum, int divisor, std::size_t count) {
  if constexpr (std::is_floating_point_v<T>) {
    const bool has_exact_inverse = (divisor & (divisor - 1)) == 0;
    if (has_exact_inverse) {  // the same result, several times as fast
      const T inverse = T{1} / static_cast<T>(divisor);
      for (std::size_t i = 0; i < count; ++i) sum[i] *= inverse;
    } else {
      for (std::size_t i = 0; i < count; ++i) sum[i] /= static_cast<T>(divisor);
    }
  } else if constexpr (!std::is_integral_v<T>) {
    using Part = typename T::value_type;
    for (std::size_t i = 0; i < count; ++i) sum[i] /= static_cast<Part>(divisor);
  }
}

struct Arrays {
  int divisor;
  std::span<const std::byte* const> inputs;
  std::span<std::byte* const> outputs;
};

template <typename T, typename Op, std::size_t most>
void reduce_chunk(const Arrays& arrays, std::size_t begin, std::size_t count) {
  alignas(64) Accumulator<T> sum[most];
  load(elements_at<T>(arrays.inputs[0], begin), sum, count);
  for (const auto* input : arrays.inputs.subspan(1)) combine<Op>(elements_at<T>(input, begin), sum, count);
  if (arrays.divisor != 1) divide(sum, arrays.divisor, count);
  for (auto* output : arrays.outputs) store(sum, elements_at<T>(output, begin), count);
}

template <typename T, typename Op>
void reduce_as(const Arrays& arrays, std::size_t elements) {
  constexpr auto short_chunk = short_chunk_bytes / sizeof(Accumulator<T>);
  constexpr auto long_chunk = long_chunk_bytes / sizeof(Accumulator<T>);
  std::size_t begin = 0;
  if constexpr (!is_narrow<T>) {
    for (; arrays.inputs.size() <= few_inputs && begin + short_chunk <= elements; begin += short_chunk)
      reduce_chunk<T, Op, short_chunk>(arrays, begin, short_chunk);
  }
  for (; begin < elements; begin += long_chunk)
    reduce_chunk<T, Op, long_chunk>(arrays, begin, std::min(long_chunk, elements - begin));
}

template <typename T>
void reduce_by(const Reduction& what, std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs,
               std::size_t elements) {
  const Arrays arrays{.divisor = what.divisor, .inputs = inputs, .outputs = outputs};
  switch (what.op) {
    case ReduceOp::sum:
    case ReduceOp::mean:
      return reduce_as<T, Sum>(arrays, elements);
    case ReduceOp::product:
      return reduce_as<T, Product>(arrays, elements);
    case ReduceOp::max:
      if constexpr (std::is_same_v<T, bool>)
        return reduce_as<T, Sum>(arrays, elements);
      else if constexpr (!requires(T a) { a.imag(); })
        return reduce_as<T, Max>(arrays, elements);
      break;
    case ReduceOp::min:
      if constexpr (std::is_same_v<T, bool>)
        return reduce_as<T, Product>(arrays, elements);
      else if constexpr (!requires(T a) { a.imag(); })
        return reduce_as<T, Min>(arrays, elements);
      break;
  }
}

void reduce(const Reduction& what, std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs,
            std::size_t elements) {
  switch (what.element) {
    case Element::f32:
      return reduce_by<float>(what, inputs, outputs, elements);
    case Element::f64:
      return reduce_by<double>(what, inputs, outputs, elements);
    case Element::f16:
      return reduce_by<Half>(what, inputs, outputs, elements);
    case Element::bf16:
      return reduce_by<BFloat16>(what, inputs, outputs, elements);
    case Element::u8:
      return reduce_by<std::uint8_t>(what, inputs, outputs, elements);
    case Element::i8:
      return reduce_by<std::int8_t>(what, inputs, outputs, elements);
    case Element::i16:
      return reduce_by<std::int16_t>(what, inputs, outputs, elements);
    case Element::i32:
      return reduce_by<std::int32_t>(what, inputs, outputs, elements);
    case Element::i64:
      return reduce_by<std::int64_t>(what, inputs, outputs, elements);
    case Element::boolean:
      return reduce_by<bool>(what, inputs, outputs, elements);
    case Element::c64:
      return reduce_by<std::complex<float>>(what, inputs, outputs, elements);
    case Element::c128:
      return reduce_by<std::complex<double>>(what, inputs, outputs, elements);
  }
}

}  // namespace
}  // namespace hortator::comm::kernels
