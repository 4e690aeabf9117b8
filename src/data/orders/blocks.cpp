#include <algorithm>
#include <hortator/error.hpp>

#include "core/hash.hpp"
#include "core/range.hpp"
#include "core/text/text.hpp"
#include "data/orders/order.hpp"
#include "data/orders/permutation.hpp"

namespace hortator::data {
namespace {

constexpr std::uint64_t purpose_of_blocks = 2;
constexpr std::uint64_t purpose_of_windows = 3;

/// The positions of the blocks of one epoch. Blocks are numbered by their position in the data set, slots by their
/// position in the order. The last block of the data set may be short.
class BlockPlan {
 public:
  BlockPlan(std::int64_t samples, std::int64_t block, std::uint64_t key)
      : block_(block),
        blocks_(core::ceil_div(samples, block), key),
        missing_(blocks_.size() * block - samples),
        short_slot_(blocks_.position_of(blocks_.size() - 1)) {}

  std::int64_t slots() const { return blocks_.size(); }
  std::int64_t short_slot() const { return short_slot_; }
  std::int64_t begin_of(std::int64_t slot) const { return slot * block_ - (slot > short_slot_ ? missing_ : 0); }
  std::int64_t slot_of(std::int64_t position) const {
    return (position + (position < begin_of(short_slot_ + 1) ? 0 : missing_)) / block_;
  }
  std::int64_t sample_at(std::int64_t position) const {
    const auto slot = slot_of(position);
    return blocks_(slot) * block_ + position - begin_of(slot);
  }

 private:
  std::int64_t block_;
  Permutation blocks_;
  std::int64_t missing_;  ///< samples that are missing in the short block
  std::int64_t short_slot_;
};

class BlockOrder final : public Order {
 public:
  BlockOrder(const EpochKey& epoch, const BlockOptions& options)
      : plan_(epoch.dataset_size, options.block, draws_of(epoch, purpose_of_blocks)),
        window_(std::min(options.window, plan_.slots())),
        key_(draws_of(epoch, purpose_of_windows)),
        short_window_(plan_.short_slot() / window_),
        last_window_((plan_.slots() - 1) / window_),
        within_(window_ * options.block, key_),
        within_short_(size_of(short_window_), key_),
        within_last_(size_of(last_window_), key_) {}

  std::int64_t sample_at(std::int64_t position) const override {
    const auto window = plan_.slot_of(position) / window_;
    const auto begin = plan_.begin_of(window * window_);
    const auto tweak = core::mix(key_, static_cast<std::uint64_t>(window));
    return plan_.sample_at(begin + permutation_of(window)(position - begin, tweak));
  }

 private:
  std::int64_t size_of(std::int64_t window) const {
    return plan_.begin_of(std::min((window + 1) * window_, plan_.slots())) - plan_.begin_of(window * window_);
  }
  const Permutation& permutation_of(std::int64_t window) const {
    if (window == short_window_) return within_short_;
    return window == last_window_ ? within_last_ : within_;
  }

  BlockPlan plan_;
  std::int64_t window_;
  std::uint64_t key_;
  std::int64_t short_window_;  ///< the window with the short block
  std::int64_t last_window_;   ///< it may have fewer blocks
  Permutation within_;
  Permutation within_short_;
  Permutation within_last_;
};

}  // namespace
}  // namespace hortator::data

namespace hortator {

std::shared_ptr<const Sampler> block_sampler(const BlockOptions& options) {
  if (options.block < 1 || options.window < 1) {
    throw UsageError(
        {.what = text::concat("block_sampler got a block of ", options.block, " and a window of ", options.window),
         .hint = "use 1 or more for both"});
  }
  return data::make_sampler(text::concat("block ", options.block, " window ", options.window), std::identity(),
                            [options](const EpochKey& epoch) -> std::unique_ptr<const Order> {
                              if (epoch.dataset_size == 0) return data::listed_order({});
                              return std::make_unique<data::BlockOrder>(epoch, options);
                            });
}

}  // namespace hortator
