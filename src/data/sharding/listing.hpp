#pragma once

#include <cstdint>
#include <hortator/detail/batch_source.hpp>
#include <memory>
#include <vector>

#include "data/orders/order.hpp"
#include "data/sharding/batch_shard.hpp"

namespace hortator::data {

/// Batches that the user chose. Caches those of the latest epoch.
class ChosenBatches {
 public:
  /// `choose` may be empty: then no batches were chosen.
  ChosenBatches(ChooseBatches choose, std::int64_t samples) : choose_(std::move(choose)), samples_(samples) {}

  explicit operator bool() const { return static_cast<bool>(choose_); }
  /// The batches of an epoch. Throws UsageError for empty batches and samples that the data set does not have.
  std::shared_ptr<const BatchList> of(std::uint64_t seed, std::int64_t epoch) const;

 private:
  ChooseBatches choose_;
  std::int64_t samples_;  ///< in the data set
  mutable std::shared_ptr<const BatchList> latest_;
  mutable std::uint64_t seed_ = 0;
  mutable std::int64_t epoch_ = -1;
};

/// The samples at the positions of one pass: one sample at each position, or with chosen batches of varying size all
/// samples of a batch. Safe for several threads.
class Listing {
 public:
  /// `order` has `count` samples, or `count` batches if `batches` is not null.
  Listing(std::unique_ptr<const Order> order, std::int64_t count, std::shared_ptr<const BatchList> batches)
      : order_(std::move(order)), count_(count), batches_(std::move(batches)) {}

  bool varies() const { return batches_ != nullptr; }
  std::vector<std::int64_t> samples(const Positions& positions) const;
  /// The number of samples at that position.
  std::int64_t rows(std::int64_t position) const;

 private:
  const std::vector<std::int64_t>& batch(std::int64_t number) const {
    return (*batches_)[static_cast<std::size_t>(number)];
  }

  std::unique_ptr<const Order> order_;
  std::int64_t count_;
  std::shared_ptr<const BatchList> batches_;
};

}  // namespace hortator::data
