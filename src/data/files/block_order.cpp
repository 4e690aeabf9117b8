#include <algorithm>
#include <bit>
#include <hortator/block_order.hpp>
#include <hortator/error.hpp>

#include "base/text.hpp"

namespace hortator {
namespace {

// SplitMix64's last step: every bit of the result hangs on every bit of the key and the value.
constexpr std::uint64_t mix(std::uint64_t key, std::uint64_t value) {
  auto x = key + 0x9e3779b97f4a7c15ULL * (value + 1);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// A permutation of [0, size), by key: a Feistel network over the next power of four, whose results that are too large
/// go through it again until one is not (fewer than four times on average).
std::int64_t permuted(std::int64_t value, std::int64_t size, std::uint64_t key) {
  constexpr int rounds = 8;
  const auto bits = std::max(1, (static_cast<int>(std::bit_width(static_cast<std::uint64_t>(size - 1))) + 1) / 2);
  const auto mask = (std::uint64_t{1} << bits) - 1;
  auto x = static_cast<std::uint64_t>(value);
  do {
    auto left = x >> bits;
    auto right = x & mask;
    for (int round = 0; round < rounds; ++round) {
      const auto next = left ^ (mix(key + static_cast<std::uint64_t>(round), right) & mask);
      left = right;
      right = next;
    }
    x = (left << bits) | right;
  } while (x >= static_cast<std::uint64_t>(size));
  return static_cast<std::int64_t>(x);
}

}  // namespace

BlockOrder::BlockOrder(std::int64_t samples, const BlockOrderOptions& options, std::uint64_t seed, std::int64_t epoch)
    : samples_(samples),
      block_(options.block),
      window_(options.window),
      key_(mix(mix(0, seed), static_cast<std::uint64_t>(epoch))) {
  if (samples_ < 0 || block_ < 1 || window_ < 1) {
    throw UsageError({.what = text::concat("there is no order of ", samples_, " samples in blocks of ", block_,
                                           ", mixed in windows of ", window_)});
  }
  blocks_ = samples_ / block_ + (samples_ % block_ != 0 ? 1 : 0);
  window_ = std::min(window_, std::max<std::int64_t>(blocks_, 1));
  short_slot_ = blocks_;
  if (samples_ % block_ == 0) return;
  // The short block is exchanged with the one that the permutation of all others leaves out.
  short_slot_ = static_cast<std::int64_t>(mix(key_, 1) % static_cast<std::uint64_t>(blocks_));
}

// The position of a slot's first sample: all slots before it are full but the short one.
std::int64_t BlockOrder::slot_begin(std::int64_t slot) const {
  return slot * block_ - (slot > short_slot_ ? block_ - samples_ % block_ : 0);
}

std::int64_t BlockOrder::operator()(std::int64_t position) const {
  // Which window, and where in it once its samples are mixed.
  auto slot = position / block_;
  if (position >= slot_begin(slot + 1)) ++slot;
  const auto window = slot / window_;
  const auto begin = slot_begin(window * window_);
  const auto end = std::min(slot_begin(std::min((window + 1) * window_, blocks_)), samples_);
  const auto mixed = begin + permuted(position - begin, end - begin, mix(key_ + 2, static_cast<std::uint64_t>(window)));

  auto mixed_slot = mixed / block_;
  if (mixed >= slot_begin(mixed_slot + 1)) ++mixed_slot;
  const auto within = mixed - slot_begin(mixed_slot);
  // The full blocks are permuted among the slots that the short one leaves.
  if (mixed_slot == short_slot_) return (blocks_ - 1) * block_ + within;
  const auto full = samples_ / block_;
  const auto among_full = mixed_slot - (mixed_slot > short_slot_ ? 1 : 0);
  return permuted(among_full, full, key_ + 1) * block_ + within;
}

}  // namespace hortator
