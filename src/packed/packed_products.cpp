#include "packed/packed_products.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "packed/int16_products.hpp"
#include "packed/packed_rows.hpp"
#include "packed/packing.hpp"
#include "paging/interception/interception.hpp"

namespace hortator::packed {
namespace {

constexpr std::int64_t max_direct_rows = 4;

#ifdef __x86_64__
#define HORTATOR_PACKED_TARGET [[gnu::target("avx512f,avx512bw,avx512vl,avx512dq,fma,f16c")]]

constexpr std::int64_t lanes = 16;
constexpr std::int64_t ahead = 1024;  // bytes that are asked for before they are needed, also of the next rows

struct DirectProduct {
  const PackedLayout& layout;
  PackedBytes parts;
  const float* x;       ///< [rows, inputs]
  const float* x_sums;  ///< of int4: [rows, groups of a row]
  float* y;             ///< [rows, outputs]
};

/// 16 numbers of 4 bits, in 8 bytes, as lanes of 32 bits.
HORTATOR_PACKED_TARGET inline __m512i nibbles_at(const std::uint8_t* numbers) {
  const auto bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(numbers));
  const auto mask = _mm_set1_epi8(15);
  const auto high = _mm_and_si128(_mm_srli_epi16(bytes, 4), mask), low = _mm_and_si128(bytes, mask);
  return _mm512_cvtepu8_epi32(_mm_unpacklo_epi8(high, low));
}

template <std::int64_t rows>
HORTATOR_PACKED_TARGET void multiply_int8(const DirectProduct& all, std::int64_t begin, std::int64_t end) {
  const auto inputs = all.layout.inputs;
  for (auto output = begin; output < end; ++output) {
    const auto* numbers = all.parts.numbers + output * inputs;
    __m512 sums[rows][2] = {};
    std::int64_t i = 0;
    for (; i + 2 * lanes <= inputs; i += 2 * lanes) {
      __builtin_prefetch(numbers + i + ahead, 0, 2);
      for (int half = 0; half < 2; ++half) {
        const auto at = i + half * lanes;
        const auto bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(numbers + at));
        const auto values = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
        for (std::int64_t row = 0; row < rows; ++row)
          sums[row][half] = _mm512_fmadd_ps(values, _mm512_loadu_ps(all.x + row * inputs + at), sums[row][half]);
      }
    }
    for (std::int64_t row = 0; row < rows; ++row) {
      auto sum = _mm512_reduce_add_ps(_mm512_add_ps(sums[row][0], sums[row][1]));
      for (auto at = i; at < inputs; ++at)
        sum += static_cast<float>(static_cast<std::int8_t>(numbers[at])) * all.x[row * inputs + at];
      all.y[row * all.layout.outputs + output] = sum * all.parts.floats[output] * int8_step;
    }
  }
}

template <std::int64_t rows>
HORTATOR_PACKED_TARGET void multiply_int8_groups(const DirectProduct& all, std::int64_t begin, std::int64_t end) {
  const auto inputs = all.layout.inputs, group = all.layout.group, groups = inputs / group;
  for (auto output = begin; output < end; ++output) {
    const auto* numbers = all.parts.numbers + output * inputs;
    const auto* scales = all.parts.floats + output * groups;
    __m512 sums[rows] = {};
    for (std::int64_t i = 0; i < inputs; i += lanes) {
      __builtin_prefetch(numbers + i + ahead, 0, 2);
      const auto bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(numbers + i));
      const auto values = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes)) * _mm512_set1_ps(scales[i / group]);
      for (std::int64_t row = 0; row < rows; ++row)
        sums[row] = _mm512_fmadd_ps(values, _mm512_loadu_ps(all.x + row * inputs + i), sums[row]);
    }
    for (std::int64_t row = 0; row < rows; ++row)
      all.y[row * all.layout.outputs + output] = _mm512_reduce_add_ps(sums[row]);
  }
}

template <std::int64_t rows>
HORTATOR_PACKED_TARGET void multiply_nf4(const DirectProduct& all, std::int64_t begin, std::int64_t end) {
  const auto inputs = all.layout.inputs, group = all.layout.group;
  const auto table = _mm512_loadu_ps(nf4_values());
  for (auto output = begin; output < end; ++output) {
    const auto* numbers = all.parts.numbers + output * inputs / 2;
    const auto* scales = all.parts.floats + output * inputs / group;
    __m512 sums[rows] = {};
    for (std::int64_t first = 0; first < inputs; first += group) {
      __builtin_prefetch(numbers + first / 2 + ahead, 0, 2);
      __m512 parts[rows] = {};
      for (auto at = first; at < first + group; at += lanes) {
        const auto values = _mm512_permutexvar_ps(nibbles_at(numbers + at / 2), table);
        for (std::int64_t row = 0; row < rows; ++row)
          parts[row] = _mm512_fmadd_ps(values, _mm512_loadu_ps(all.x + row * inputs + at), parts[row]);
      }
      const auto scale = _mm512_set1_ps(scales[first / group]);
      for (std::int64_t row = 0; row < rows; ++row) sums[row] = _mm512_fmadd_ps(parts[row], scale, sums[row]);
    }
    for (std::int64_t row = 0; row < rows; ++row)
      all.y[row * all.layout.outputs + output] = _mm512_reduce_add_ps(sums[row]);
  }
}

template <std::int64_t rows>
HORTATOR_PACKED_TARGET void multiply_int4(const DirectProduct& all, std::int64_t begin, std::int64_t end) {
  const auto inputs = all.layout.inputs, group = all.layout.group, groups = inputs / group;
  for (auto output = begin; output < end; ++output) {
    const auto* numbers = all.parts.numbers + output * inputs / 2;
    const auto* pairs = all.parts.pairs + output * groups;
    __m512 sums[rows] = {};
    float smallest_sums[rows] = {};
    for (std::int64_t number = 0; number < groups; ++number) {
      const auto first = number * group;
      __builtin_prefetch(numbers + first / 2 + ahead, 0, 2);
      __m512 parts[rows] = {};
      for (auto at = first; at < first + group; at += lanes) {
        const auto values = _mm512_cvtepi32_ps(nibbles_at(numbers + at / 2));
        for (std::int64_t row = 0; row < rows; ++row)
          parts[row] = _mm512_fmadd_ps(values, _mm512_loadu_ps(all.x + row * inputs + at), parts[row]);
      }
      const auto scale = _mm512_set1_ps(_cvtsh_ss(static_cast<std::uint16_t>(pairs[number] >> 16U)));
      const auto smallest = _cvtsh_ss(static_cast<std::uint16_t>(pairs[number]));
      for (std::int64_t row = 0; row < rows; ++row) {
        sums[row] = _mm512_fmadd_ps(parts[row], scale, sums[row]);
        smallest_sums[row] += smallest * all.x_sums[row * groups + number];
      }
    }
    for (std::int64_t row = 0; row < rows; ++row)
      all.y[row * all.layout.outputs + output] = _mm512_reduce_add_ps(sums[row]) + smallest_sums[row];
  }
}

bool has_packed_instructions() {
  static const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512vl") &&
                          __builtin_cpu_supports("avx512dq");  // all of these have F16C
  return has;
}

using Multiply = void (*)(const DirectProduct&, std::int64_t, std::int64_t);

Multiply multiply_of(WeightFormat format, std::int64_t rows) {
  using Table = std::array<Multiply, max_direct_rows>;
  static constexpr Table int8 = {multiply_int8<1>, multiply_int8<2>, multiply_int8<3>, multiply_int8<4>};
  static constexpr Table int4 = {multiply_int4<1>, multiply_int4<2>, multiply_int4<3>, multiply_int4<4>};
  static constexpr Table nf4 = {multiply_nf4<1>, multiply_nf4<2>, multiply_nf4<3>, multiply_nf4<4>};
  static constexpr Table int8_groups = {multiply_int8_groups<1>, multiply_int8_groups<2>, multiply_int8_groups<3>,
                                        multiply_int8_groups<4>};
  const auto& table = format == WeightFormat::int8   ? int8
                      : format == WeightFormat::int4 ? int4
                      : format == WeightFormat::nf4  ? nf4
                                                     : int8_groups;
  return table[static_cast<std::size_t>(rows - 1)];
}

at::Tensor direct_product(const PackedLayout& layout, const at::Tensor& x, const at::Tensor& bytes) {
  const auto rows = x.size(0);
  auto y = at::empty({rows, layout.outputs}, x.options());
  const auto sums = layout.format == WeightFormat::int4 ? x.view({rows, -1, layout.group}).sum(-1) : at::Tensor();
  const DirectProduct all{.layout = layout,
                          .parts = parts_of(layout, bytes),
                          .x = x.const_data_ptr<float>(),
                          .x_sums = sums.defined() ? sums.const_data_ptr<float>() : nullptr,
                          .y = y.mutable_data_ptr<float>()};
  const auto multiply = multiply_of(layout.format, rows);
  const auto grain = std::max<std::int64_t>(1, at::internal::GRAIN_SIZE / layout.inputs);
  at::parallel_for(0, layout.outputs, grain, [&](std::int64_t begin, std::int64_t end) { multiply(all, begin, end); });
  return y;
}

/// Groups are read 16 numbers at a time; those of files may be shorter.
bool can_multiply_directly(const PackedLayout& layout) {
  const bool has_lanes = layout.format == WeightFormat::int8 || layout.group % lanes == 0;
  return has_packed_instructions() && has_lanes && layout.has_whole_groups();
}
#else
bool can_multiply_directly(const PackedLayout&) { return false; }
at::Tensor direct_product(const PackedLayout&, const at::Tensor& x, const at::Tensor&) { return x; }
#endif

/// Calls work(rows of W, the first one's number) for some rows at a time.
template <typename Work>
void in_unpacked_parts(const PackedLayout& layout, const at::Tensor& bytes, at::ScalarType type, const Work& work) {
  constexpr std::int64_t elements = std::int64_t{1} << 22;
  const auto step = std::clamp<std::int64_t>(elements / std::max<std::int64_t>(1, layout.inputs), 1, layout.outputs);
  for (std::int64_t begin = 0; begin < layout.outputs; begin += step) {
    const auto end = std::min(layout.outputs, begin + step);
    work(unpacked_rows(layout, bytes, begin, end).to(type), begin);
  }
}

/// [rows, inputs] to [rows, outputs]
at::Tensor forward_product(const PackedLayout& layout, const at::Tensor& x, const at::Tensor& weight) {
  const paging::Hold present(std::span(&weight, 1), paging::Access::read);
  const bool is_short = x.size(0) > 0 && x.size(0) <= max_direct_rows && x.scalar_type() == at::kFloat;
  if (is_short && has_int16_product(layout)) return int16_product(layout, x, weight);
  if (is_short && can_multiply_directly(layout)) return direct_product(layout, x, weight);
  auto y = at::empty({x.size(0), layout.outputs}, x.options());
  in_unpacked_parts(layout, weight, x.scalar_type(), [&](const at::Tensor& rows, std::int64_t begin) {
    y.narrow(1, begin, rows.size(0)).copy_(at::linear(x, rows));
  });
  return y;
}

at::Tensor backward_product(const PackedLayout& layout, const at::Tensor& gradient, const at::Tensor& weight) {
  const paging::Hold present(std::span(&weight, 1), paging::Access::read);
  auto by_x = at::zeros({gradient.size(0), layout.inputs}, gradient.options());
  in_unpacked_parts(layout, weight, gradient.scalar_type(), [&](const at::Tensor& rows, std::int64_t begin) {
    by_x.addmm_(gradient.narrow(1, begin, rows.size(0)), rows);
  });
  return by_x;
}

struct PackedProduct : torch::autograd::Function<PackedProduct> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const PackedLayout& layout) {
    context->saved_data["weight"] = weight;
    context->saved_data["layout"] = std::vector<std::int64_t>{static_cast<std::int64_t>(layout.format), layout.outputs,
                                                              layout.inputs, layout.group};
    return forward_product(layout, x, weight);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const auto saved = context->saved_data["layout"].toIntVector();
    const PackedLayout layout{
        .format = static_cast<WeightFormat>(saved[0]), .outputs = saved[1], .inputs = saved[2], .group = saved[3]};
    return {backward_product(layout, gradients[0].contiguous(), context->saved_data["weight"].toTensor()), {}, {}};
  }
};

}  // namespace

at::Tensor product(const PackedLayout& layout, const at::Tensor& x, const at::Tensor& weight) {
  auto sizes = x.sizes().vec();
  sizes.back() = layout.outputs;
  const auto rows = x.reshape({-1, layout.inputs}).contiguous();
  const bool learns = at::GradMode::is_enabled() && rows.requires_grad();
  const auto y = learns ? PackedProduct::apply(rows, weight, layout) : forward_product(layout, rows.detach(), weight);
  return y.view(sizes);
}

at::Tensor rows_at(const PackedLayout& layout, const at::Tensor& weight, const at::Tensor& numbers) {
  const paging::Hold present(std::span(&weight, 1), paging::Access::read);
  auto sizes = numbers.sizes().vec();
  sizes.push_back(layout.inputs);
  return unpacked_rows_at(layout, weight, numbers.reshape({-1})).view(sizes);
}

}  // namespace hortator::packed
