#include "packed/gguf_layers.hpp"

#include <ATen/ATen.h>

#include <cstring>
#include <utility>

namespace hortator::packed {
namespace {

constexpr std::int64_t group = 32;  // elements of a block

std::uint16_t half_bits(const std::uint8_t* from) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, from, sizeof bits);
  return bits;
}

std::uint32_t pair_of(std::uint16_t scale, std::uint16_t smallest) { return std::uint32_t{scale} << 16U | smallest; }

/// Bytes with element i below element i + 16 become bytes with consecutive elements, the first one above.
void repack_nibbles(const std::uint8_t* from, std::uint8_t* to) {
  constexpr std::int64_t half = group / 2;
  for (std::int64_t i = 0; i < half; i += 2) {
    to[i / 2] = static_cast<std::uint8_t>((from[i] & 15U) << 4U | (from[i + 1] & 15U));
    to[(i + half) / 2] = static_cast<std::uint8_t>((from[i] & 0xF0U) | from[i + 1] >> 4U);
  }
}

/// The places of one group in a packed matrix.
struct GroupPlace {
  std::uint8_t* scale;
  std::uint8_t* numbers;
};

void repack(const std::string& type, const std::uint8_t* block, const GroupPlace& to) {
  if (type == "Q8_0") {
    const auto scale = c10::detail::fp16_ieee_to_fp32_value(half_bits(block));
    std::memcpy(to.scale, &scale, sizeof scale);
    std::memcpy(to.numbers, block + 2, group);
    return;
  }
  const bool has_smallest = type == "Q4_1";  // Q4_0: numbers less 8, which is exact in 16 bits as well
  const auto scale = half_bits(block);
  const auto value = c10::detail::fp16_ieee_to_fp32_value(scale);
  const auto smallest = has_smallest ? half_bits(block + 2) : c10::Half(-8 * value).x;
  const auto pair = pair_of(scale, smallest);
  std::memcpy(to.scale, &pair, sizeof pair);
  repack_nibbles(block + (has_smallest ? 4 : 2), to.numbers);
}

}  // namespace

GgufLayers::GgufLayers(std::unique_ptr<weights::GgufWeights> source) : source_(std::move(source)) {
  for (const auto& name : source_->names()) {
    const auto type = source_->block_type(name);
    const auto shape = source_->spec(name).shape;
    if (shape.size() != 2 || shape.back() % group != 0) continue;
    const bool is_int8 = type == "Q8_0";
    if (!is_int8 && type != "Q4_0" && type != "Q4_1") continue;
    layers_.emplace(name, PackedLayout{.format = is_int8 ? WeightFormat::int8_groups : WeightFormat::int4,
                                       .outputs = shape[0],
                                       .inputs = shape[1],
                                       .group = group});
  }
}

at::Tensor GgufLayers::packed(const std::string& name) const {
  const auto& layout = layers_.at(name);
  const auto type = source_->block_type(name);
  auto bytes = at::empty({layout.bytes()}, at::kByte);
  auto* scales = bytes.mutable_data_ptr<std::uint8_t>();
  auto* numbers = scales + layout.scale_bytes();
  const auto blocks = layout.groups_of_row(), numbers_of_group = layout.row_bytes() / blocks;
  const auto bytes_of_block = source_->block_bytes(name);
  std::vector<std::uint8_t> row(static_cast<std::size_t>(blocks * bytes_of_block));
  for (std::int64_t i = 0; i < layout.outputs; ++i) {
    source_->read_blocks_of_row(name, i, reinterpret_cast<std::byte*>(row.data()));
    for (std::int64_t block = 0; block < blocks; ++block) {
      const auto at = i * blocks + block;
      repack(type, row.data() + block * bytes_of_block,
             {.scale = scales + 4 * at, .numbers = numbers + at * numbers_of_group});
    }
  }
  return bytes;
}

formats::TensorSpec GgufLayers::spec(const std::string& name) const {
  const auto layer = layers_.find(name);
  if (layer == layers_.end()) return source_->spec(name);
  return {.type = at::kByte, .shape = {layer->second.bytes(), 1}};
}

void GgufLayers::read(const std::string& name, core::Range elements, std::byte* to) const {
  const auto layer = layers_.find(name);
  if (layer == layers_.end()) return source_->read(name, elements, to);
  const std::lock_guard lock(mutex_);
  if (current_ != name) {
    current_bytes_ = packed(name);
    current_ = name;
  }
  std::memcpy(to, current_bytes_.const_data_ptr<std::uint8_t>() + elements.begin,
              static_cast<std::size_t>(elements.size()));
  if (elements.end < layer->second.bytes()) return;
  current_.clear();
  current_bytes_ = at::Tensor();
}

std::optional<weights::FileSpan> GgufLayers::span(const std::string& name) const {
  return layers_.contains(name) ? std::nullopt : source_->span(name);
}

at::Tensor GgufLayers::tensor(const std::string& name) const {
  return layers_.contains(name) ? WeightSource::tensor(name) : source_->tensor(name);
}

}  // namespace hortator::packed
