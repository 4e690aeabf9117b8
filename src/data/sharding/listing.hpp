#pragma once

#include <hortator/detail/batch_source.hpp>
#include <memory>
#include <vector>

#include "data/orders/order.hpp"
#include "data/sharding/batch_shard.hpp"

namespace hortator::data {

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
