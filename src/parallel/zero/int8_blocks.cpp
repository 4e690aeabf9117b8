#include "parallel/zero/int8_blocks.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <limits>

namespace hortator::parallel {
namespace {

constexpr float largest_integer = 127;
// With smaller scales, which are no normal numbers, quotients would be inexact or infinite; with larger ones the
// largest value would become infinite.
constexpr float min_scale = std::numeric_limits<float>::min();
constexpr float max_scale = 0x1.020406p+121F;  // times 127 it is below the largest number

constexpr std::int64_t scale_bytes = int8_block_bytes - int8_block_values;

at::Tensor scales_of(const at::Tensor& blocks) {
  auto scales = at::empty({blocks.size(0), 1}, blocks.options());  // contiguous also if it is one
  at::amax_out(scales, blocks.abs(), 1, /*keepdim=*/true);
  const auto is_not_finite = scales.isfinite().logical_not_();
  scales.div_(largest_integer).clamp_(min_scale, max_scale);
  return scales.masked_fill_(is_not_finite, std::numeric_limits<float>::quiet_NaN());
}

}  // namespace

bool packs_int8(at::ScalarType type) { return type == at::kFloat || type == at::kBFloat16 || type == at::kHalf; }

at::Tensor pack_int8(const at::Tensor& values) {
  const auto blocks = values.view({-1, int8_block_values}).to(at::kFloat);
  const auto scales = scales_of(blocks);
  const auto integers =
      blocks.div(scales).round_().clamp_(-largest_integer, largest_integer).nan_to_num_(0).to(at::kChar);
  return at::cat({scales.view(at::kByte), integers.view(at::kByte)}, 1).flatten();
}

void unpack_int8(const at::Tensor& packed, const at::Tensor& values) {
  const auto blocks = packed.view({-1, int8_block_bytes});
  const auto unpacked = values.view({-1, int8_block_values});
  // Some blocks at a time, from the front: values are written where those before them have been read.
  const auto at_a_time = values.is_cpu() ? std::int64_t{1024} : blocks.size(0);
  for (std::int64_t begin = 0; begin < blocks.size(0); begin += at_a_time) {
    const auto count = std::min(at_a_time, blocks.size(0) - begin);
    const auto read = blocks.narrow(0, begin, count).clone();
    const auto scales = read.narrow(1, 0, scale_bytes).contiguous().view(at::kFloat);
    const auto integers = read.narrow(1, scale_bytes, int8_block_values).view(at::kChar);
    unpacked.narrow(0, begin, count).copy_(integers.to(at::kFloat).mul_(scales));
  }
}

}  // namespace hortator::parallel
