#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "packed/formats/float_product.hpp"

namespace hortator::packed {

/// In which order the inputs of a block of 64 stand: as they are, or the even ones first, as halves of bytes have them.
enum class BlockOrder { as_is, even_first };

/// A product in whole numbers: inputs are rounded to 16 bits in blocks of 64.
struct Int16Product {
  const PackedLayout& layout;
  PackedBytes parts;
  const std::int32_t* group_of_half;  ///< of a row, for each half of a block
  const std::int16_t* shorts;         ///< [rows, inputs]
  const float* scales;                ///< [rows, blocks]
  float* y;                           ///< [rows, outputs]
};

/// For 1 to 4 rows of inputs: the outputs from a first to a last one.
using Int16Kernels = std::array<void (*)(const Int16Product&, std::int64_t, std::int64_t), max_direct_rows>;

/// Undefined where the processor has no VNNI, or rows and groups are not whole blocks and halves of them.
at::Tensor int16_product(const PackedLayout& layout, const at::Tensor& x, const at::Tensor& bytes, BlockOrder order,
                         const Int16Kernels& kernels);

/// AVX-512 with VNNI.
bool has_integer_instructions();

constexpr std::int64_t int16_block = 64, int16_half = 32;
constexpr float largest_int16 = 32767;
constexpr float smallest_largest = 1e-33F;  // of a block that is not rounded to zeros: its factor is finite

#ifdef __x86_64__
#define HORTATOR_INT16_TARGET [[gnu::target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,fma,f16c")]]

/// 16 partial sums of the products of 32 numbers, as floats.
HORTATOR_INT16_TARGET inline __m512 half_product(__m512i numbers, const std::int16_t* shorts) {
  return _mm512_cvtepi32_ps(_mm512_dpwssd_epi32(_mm512_setzero_si512(), numbers, _mm512_loadu_si512(shorts)));
}
#endif

}  // namespace hortator::packed
