#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "packed/formats/layout.hpp"
#ifdef __x86_64__
#if defined(__GNUC__) && !defined(__clang__)  // GCC 12 reports its own intrinsics
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#endif

namespace hortator::packed {

/// Rows of inputs that are multiplied at once, without unpacking the matrix.
constexpr std::int64_t max_direct_rows = 4;

/// A product in float32.
struct FloatProduct {
  const PackedLayout& layout;
  PackedBytes parts;
  const float* x;       ///< [rows, inputs]
  const float* x_sums;  ///< [rows, groups of a row], if the kernels need them
  float* y;             ///< [rows, outputs]
};

/// For 1 to 4 rows of inputs: the outputs from a first to a last one.
using FloatKernels = std::array<void (*)(const FloatProduct&, std::int64_t, std::int64_t), max_direct_rows>;

/// Undefined where the processor has no AVX-512, or groups are not whole lanes.
at::Tensor float_product(const PackedLayout& layout, const at::Tensor& x, const at::Tensor& bytes,
                         const FloatKernels& kernels, bool needs_sums = false);

/// Calls work(first output, end) for parts of the outputs, on LibTorch's threads.
template <typename Work>
void over_outputs(const PackedLayout& layout, const Work& work) {
  const auto grain = std::max<std::int64_t>(1, at::internal::GRAIN_SIZE / layout.inputs);
  at::parallel_for(0, layout.outputs, grain, work);
}

#ifdef __x86_64__
#define HORTATOR_PACKED_TARGET [[gnu::target("avx512f,avx512bw,avx512vl,avx512dq,fma,f16c")]]

constexpr std::int64_t lanes = 16;
constexpr std::int64_t bytes_ahead = 1024;  // that are asked for before they are needed, also of the next rows

/// 16 numbers of 4 bits, in 8 bytes, as lanes of 32 bits.
HORTATOR_PACKED_TARGET inline __m512i nibbles_in_lanes(const std::uint8_t* numbers) {
  const auto bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(numbers));
  const auto mask = _mm_set1_epi8(15);
  const auto high = _mm_and_si128(_mm_srli_epi16(bytes, 4), mask), low = _mm_and_si128(bytes, mask);
  return _mm512_cvtepu8_epi32(_mm_unpacklo_epi8(high, low));
}
#endif

}  // namespace hortator::packed
