#pragma once

#include <hortator/detail/batch_source.hpp>
#include <memory>
#include <vector>

#include "data/orders/order.hpp"
#include "data/sharding/batch_shard.hpp"

namespace hortator::data {

/// Which samples of the data set lie at the positions that are dealt in one pass: one each, or, where they were chosen
/// in batches of varying size, the samples of a batch. Reading is safe from any thread.
class Listing {
 public:
  /// `order` is one of `count` samples, or of as many `batches`, which otherwise are null.
  Listing(std::unique_ptr<const Order> order, std::int64_t count, std::shared_ptr<const BatchList> batches)
      : order_(std::move(order)), count_(count), batches_(std::move(batches)) {}

  bool varies() const { return batches_ != nullptr; }
  std::vector<std::int64_t> samples(const Positions& positions) const;
  /// How many samples lie at that position.
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
