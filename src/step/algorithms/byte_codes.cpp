#include "step/algorithms/byte_codes.hpp"

#include <ATen/ops/bucketize.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "parallel/zero/shard_plan.hpp"
#include "step/moments/moment_layout.hpp"

namespace hortator::step {
namespace {

// A slice then consists of whole blocks of its parameter, so that every rank has the bytes that one rank would have.
static_assert(parallel::ShardLimits{}.grain % moment_block == 0);

// As blocks of equal size, the last one filled with zeros.
at::Tensor in_blocks(const at::Tensor& numbers) {
  const auto blocks = blocks_of(numbers.numel());
  const auto missing = blocks * moment_block - numbers.numel();
  return (missing == 0 ? numbers : at::constant_pad_nd(numbers, {0, missing})).view({blocks, moment_block});
}

}  // namespace

// In each decade from 1e-7 to 1, twice as many evenly spaced fractions as in the one below; 0 and 1 fill the 256.
std::array<float, 256> dynamic_codes(bool is_signed) {
  constexpr int decades = 7;
  std::vector<float> codes = {0, 1};
  for (int decade = 0; decade < decades; ++decade) {
    const int fractions = (is_signed ? 1 : 2) << decade;
    for (int i = 0; i < fractions; ++i) {
      const double middle = 0.1 + 0.9 * (i + 0.5) / fractions;
      const auto code = static_cast<float>(middle * std::pow(10.0, decade - decades + 1));
      codes.push_back(code);
      if (is_signed) codes.push_back(-code);
    }
  }
  std::ranges::sort(codes);
  std::array<float, 256> all{};
  std::ranges::copy(codes, all.begin());
  return all;
}

ByteCodes::ByteCodes(bool is_signed, c10::Device device) : is_signed_(is_signed) {
  const auto codes = dynamic_codes(is_signed);
  const auto on_cpu = at::tensor(at::ArrayRef<float>(codes.data(), codes.size()), at::kFloat);
  codes_ = on_cpu.to(device);
  borders_ = (on_cpu.narrow(0, 1, 255) + on_cpu.narrow(0, 0, 255)).div_(2).to(device);
}

const ByteCodes& ByteCodes::of(bool is_signed, c10::Device device) {
  static std::mutex mutex;
  static auto* known = new std::map<std::pair<bool, std::string>, ByteCodes>;  // devices end before static objects
  const std::scoped_lock lock(mutex);
  const auto key = std::pair(is_signed, device.str());
  const auto found = known->find(key);
  return found != known->end() ? found->second : known->emplace(key, ByteCodes(is_signed, device)).first->second;
}

at::Tensor ByteCodes::restore(const at::Tensor& bytes, const at::Tensor& scales) const {
  const auto fractions = at::index_select(codes_, 0, bytes.reshape({-1}).to(at::kInt));
  const auto blocks = in_blocks(fractions).mul(scales.unsqueeze(1));
  return blocks.view({-1}).narrow(0, 0, fractions.numel());
}

void ByteCodes::store(const at::Tensor& numbers, at::Tensor& bytes, at::Tensor& scales) const {
  if (numbers.numel() == 0) return;
  const auto blocks = in_blocks(numbers);
  scales.copy_(blocks.abs().amax(1));
  const auto fractions = blocks.div(scales.clamp_min(1e-38F).unsqueeze(1));
  auto chosen = at::bucketize(fractions, borders_, /*out_int32=*/true);
  if (!is_signed_) chosen.clamp_min_(fractions.gt(0).to(at::kInt));
  bytes.view({-1}).copy_(chosen.view({-1}).narrow(0, 0, numbers.numel()));
}

}  // namespace hortator::step
