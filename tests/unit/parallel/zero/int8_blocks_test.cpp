#include "parallel/zero/int8_blocks.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "parallel/zero/shard_plan.hpp"
#include "support/catch.hpp"

using namespace hortator;
using parallel::int8_block_bytes;
using parallel::int8_block_values;

namespace {

using Limits = std::numeric_limits<float>;

at::Tensor rounded(const at::Tensor& values) {
  auto result = at::full_like(values, -1);
  parallel::unpack_int8(parallel::pack_int8(values), result);
  return result;
}

at::Tensor tensor_of(const std::vector<float>& values) { return at::tensor(values, at::kFloat); }

/// Blocks of normally distributed values.
at::Tensor random_blocks(std::int64_t blocks, double size, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(blocks * int8_block_values));
  for (auto& value : values) value = static_cast<float>(normal(random) * size);
  return tensor_of(values);
}

float scale_of(const at::Tensor& packed, std::int64_t block) {
  float scale = 0;
  std::memcpy(&scale, packed.const_data_ptr<std::uint8_t>() + block * int8_block_bytes, sizeof scale);
  return scale;
}

/// The largest difference to the values, in scales of the blocks.
double worst_in_scales(const at::Tensor& values) {
  const auto packed = parallel::pack_int8(values);
  const auto difference = rounded(values).to(at::kDouble).sub(values.to(at::kDouble)).abs();
  double worst = 0;
  for (std::int64_t block = 0; block * int8_block_values < values.numel(); ++block) {
    const auto largest = difference.narrow(0, block * int8_block_values, int8_block_values).max().item<double>();
    worst = std::max(worst, largest / static_cast<double>(scale_of(packed, block)));
  }
  return worst;
}

// Half a scale, and what fp32 loses when 127 scales are divided and multiplied: half of its last digit each.
constexpr double max_scales = 0.5 + 127 * 0x1p-23;

}  // namespace

TEST_CASE("int8 blocks: what is packed of a block is its scale, and its values in scales, by fp32's rounding") {
  const auto values = random_blocks(100, 0.02, 1);
  const auto packed = parallel::pack_int8(values);
  CHECK(packed.scalar_type() == at::kByte);
  REQUIRE(packed.numel() == 100 * int8_block_bytes);
  const auto* value = values.const_data_ptr<float>();
  for (std::int64_t block = 0; block < 100; ++block, value += int8_block_values) {
    float largest = 0;
    for (std::int64_t i = 0; i < int8_block_values; ++i) largest = std::max(largest, std::abs(value[i]));
    const float scale = scale_of(packed, block);
    CHECK(scale == largest / 127);
    const auto* integer =
        reinterpret_cast<const std::int8_t*>(packed.const_data_ptr<std::uint8_t>() + block * int8_block_bytes + 4);
    for (std::int64_t i = 0; i < int8_block_values; ++i) {
      if (integer[i] != std::nearbyint(value[i] / scale)) FAIL("value " << i << " of block " << block);
    }
  }
}

TEST_CASE("int8 blocks: values of every size are off by half a scale at most, and the scale is 1/127 of the largest") {
  for (int exponent = -126; exponent <= 124; ++exponent) {
    INFO("2^" << exponent);
    const auto values = random_blocks(8, std::ldexp(1.0, exponent), static_cast<unsigned>(exponent + 1000));
    if (!values.isfinite().all().item<bool>()) continue;
    CHECK(rounded(values).isfinite().all().item<bool>());
    CHECK(worst_in_scales(values) <= max_scales);
    const auto packed = parallel::pack_int8(values);
    const auto largest = values.narrow(0, 0, int8_block_values).abs().max().item<float>();
    CHECK(scale_of(packed, 0) == std::max(largest / 127, Limits::min()));
  }
}

TEST_CASE("int8 blocks: zeros stay zeros, and the largest value of a block keeps its sign and nearly its size") {
  CHECK(at::equal(rounded(at::zeros({2 * int8_block_values})), at::zeros({2 * int8_block_values})));
  auto sparse = at::zeros({int8_block_values});
  sparse[63] = -5;
  const auto result = rounded(sparse);
  CHECK(at::equal(result.narrow(0, 0, 63), at::zeros({63})));
  CHECK(result[63].item<float>() == Approx(-5).epsilon(1e-6));
  // Multiples of the scale are exact.
  const auto integers = at::arange(-127, 129, at::kFloat).clamp(-127, 127).mul(0.25);
  for (std::int64_t begin = 0; begin < integers.numel(); begin += int8_block_values) {
    auto block = integers.narrow(0, begin, int8_block_values).clone();
    block[0] = 31.75;  // 127 scales of a quarter
    CHECK(at::equal(rounded(block), block));
  }
}

TEST_CASE("int8 blocks: numbers at the ends of fp32's range are within half a scale, and finite") {
  for (const float extreme : {Limits::max(), Limits::lowest(), Limits::max() / 127, Limits::min(), Limits::min() * 127,
                              Limits::min() * 126.5F, Limits::denorm_min(), Limits::min() - Limits::denorm_min()}) {
    INFO(extreme);
    auto values = at::linspace(-1, 1, int8_block_values, at::kFloat).mul(extreme);
    values[7] = extreme;
    CHECK(rounded(values).isfinite().all().item<bool>());
    CHECK(worst_in_scales(values) <= max_scales);
  }
}

TEST_CASE("int8 blocks: a value that is not finite makes its block NaN, and no other") {
  for (const float bad : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()}) {
    for (std::int64_t position = 0; position < int8_block_values; ++position) {
      const auto values = random_blocks(3, 1, 4);
      const auto expected = rounded(values);
      values[int8_block_values + position] = bad;
      const auto result = rounded(values);
      CHECK(result.narrow(0, int8_block_values, int8_block_values).isnan().all().item<bool>());
      for (const std::int64_t block : {0, 2}) {
        const auto begin = block * int8_block_values;
        CHECK(at::equal(result.narrow(0, begin, int8_block_values), expected.narrow(0, begin, int8_block_values)));
      }
    }
  }
}

TEST_CASE("int8 blocks: 16-bit values become those that fp32's would, rounded to their type") {
  for (const auto type : {at::kBFloat16, at::kHalf}) {
    const auto values = random_blocks(20, 0.3, 5).to(type);
    CHECK(at::equal(parallel::pack_int8(values), parallel::pack_int8(values.to(at::kFloat))));
    CHECK(at::equal(rounded(values), rounded(values.to(at::kFloat)).to(type)));
    auto largest = at::full({int8_block_values}, type == at::kHalf ? 65504.0 : 3.3895313892515355e38, type);
    CHECK(at::equal(rounded(largest), largest));
    largest[3] = std::numeric_limits<double>::infinity();
    CHECK(rounded(largest).isnan().all().item<bool>());
  }
}

TEST_CASE("int8 blocks: packed bytes at the end of the values' own memory give the same values") {
  for (const auto type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    for (const std::int64_t blocks : {0, 1, 2, 3, 5, 64, 1023, 1024, 1025, 3000}) {
      INFO(c10::toString(type) << ", " << blocks << " blocks");
      const auto values = random_blocks(blocks, 1, 6).to(type);
      const auto packed = parallel::pack_int8(values);
      auto memory = at::full_like(values, 77);
      const auto bytes = memory.view(at::kByte);
      const auto end = bytes.narrow(0, bytes.numel() - packed.numel(), packed.numel());
      end.copy_(packed);
      parallel::unpack_int8(end, memory);
      CHECK(at::equal(memory, rounded(values)));
    }
  }
}

TEST_CASE("int8 blocks: fp32, bf16 and fp16 can be packed, other types cannot") {
  for (const auto type : {at::kFloat, at::kBFloat16, at::kHalf}) CHECK(parallel::packs_int8(type));
  for (const auto type : {at::kDouble, at::kLong, at::kChar, at::kByte, at::kBool, at::kComplexFloat})
    CHECK(!parallel::packs_int8(type));
}

// Parameters shorter than a block are followed by zeros, and so is the end of each.
TEST_CASE("int8 blocks: of every plan, blocks lie within one parameter and one rank's part") {
  for (const std::int64_t elements : {1, 2, 63, 64, 65, 127, 128, 129, 1000}) {
    for (int ranks = 1; ranks <= 5; ++ranks) {
      const std::vector<parallel::ShardItem> items = {
          {.elements = elements}, {.elements = 7}, {.elements = elements}, {.elements = 0}, {.elements = 64}};
      const auto plan = parallel::plan_shards(items, ranks, {.first_bytes = 1 << 20});
      for (std::size_t flat = 0; flat < plan.flats.size(); ++flat)
        CHECK(plan.part_elements(flat) % int8_block_values == 0);
      for (const auto& position : plan.positions) CHECK(position.offset % int8_block_values == 0);
    }
  }
}
