#include "models/layers/projection.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <array>

#include "models/layers/plain_tensor.hpp"

namespace hortator::models {
namespace {

constexpr std::int64_t max_rows = 4;

#ifdef __x86_64__
constexpr std::int64_t lanes = 16;    // of a register of AVX-512
constexpr std::int64_t ahead = 2048;  // elements that are asked for before they are needed, also of the next rows
using Lanes [[gnu::vector_size(64), gnu::aligned(4), gnu::may_alias]] = float;

struct Factors {
  const float* x;       ///< [rows, columns]
  const float* weight;  ///< [outputs, columns]
  float* y;             ///< [rows, outputs]
  std::int64_t outputs, columns;
};

/// The outputs from `begin` to `end`. One row of the weight after the other: memory is read from front to back.
template <std::int64_t rows>
[[gnu::target("avx512f,avx512vl,fma")]] void multiply(const Factors& factors, std::int64_t begin, std::int64_t end) {
  const auto columns = factors.columns;
  for (auto output = begin; output < end; ++output) {
    const auto* weight = factors.weight + output * columns;
    Lanes sums[rows][2] = {};
    std::int64_t column = 0;
    for (; column + 2 * lanes <= columns; column += 2 * lanes) {
#pragma GCC unroll 2
      for (std::int64_t half = 0; half < 2; ++half) {
        const auto at = column + half * lanes;
        __builtin_prefetch(weight + at + ahead, 0, 2);  // into the second cache: it waits for more lines at once
        const auto some = *reinterpret_cast<const Lanes*>(weight + at);
#pragma GCC unroll 4
        for (std::int64_t row = 0; row < rows; ++row)
          sums[row][half] += some * *reinterpret_cast<const Lanes*>(factors.x + row * columns + at);
      }
    }
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto both = sums[row][0] + sums[row][1];
      float sum = 0;
      for (std::int64_t lane = 0; lane < lanes; ++lane) sum += both[lane];
      for (auto at = column; at < columns; ++at) sum += weight[at] * factors.x[row * columns + at];
      factors.y[row * factors.outputs + output] = sum;
    }
  }
}

bool has_instructions() {
  static const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl");
  return has;
}

at::Tensor product(const at::Tensor& x, const at::Tensor& weight) {
  constexpr std::array multiplications = {multiply<1>, multiply<2>, multiply<3>, multiply<4>};
  auto shape = x.sizes().vec();
  shape.back() = weight.size(0);
  auto y = at::empty(shape, x.options());
  const Factors factors{.x = x.const_data_ptr<float>(),
                        .weight = weight.const_data_ptr<float>(),
                        .y = y.mutable_data_ptr<float>(),
                        .outputs = weight.size(0),
                        .columns = weight.size(1)};
  const auto run = multiplications.at(static_cast<std::size_t>(x.numel() / x.size(-1) - 1));
  const auto grain = std::max<std::int64_t>(1, at::internal::GRAIN_SIZE / weight.size(1));
  at::parallel_for(0, weight.size(0), grain, [&](auto begin, auto end) { run(factors, begin, end); });
  return y;
}

bool can_multiply(const at::Tensor& x, const at::Tensor& weight) {
  if (!has_instructions()) return false;
  const bool fits = weight.dim() == 2 && x.dim() > 0 && x.numel() > 0 && x.size(-1) == weight.size(1);
  return fits && x.numel() <= max_rows * x.size(-1) && is_plain(x) && is_plain(weight);
}
#else
bool can_multiply(const at::Tensor&, const at::Tensor&) { return false; }
at::Tensor product(const at::Tensor& x, const at::Tensor& weight) { return at::linear(x, weight); }
#endif

}  // namespace

at::Tensor project(const at::Tensor& x, const at::Tensor& weight) {
  return can_multiply(x, weight) ? product(x, weight) : at::linear(x, weight);
}

at::Tensor project(const at::Tensor& x, torch::nn::Linear& layer) {
  if (layer->bias.defined()) return at::linear(x, layer->weight, layer->bias);
  return project(x, layer->weight);
}

}  // namespace hortator::models
