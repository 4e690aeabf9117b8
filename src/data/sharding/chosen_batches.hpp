#pragma once

#include <cstdint>
#include <hortator/detail/batch_source.hpp>
#include <memory>

namespace hortator::data {

/// Batches that the user chose, those of the epoch asked for last at hand.
class ChosenBatches {
 public:
  /// `choose` may be empty: there are none.
  ChosenBatches(ChooseBatches choose, std::int64_t samples) : choose_(std::move(choose)), samples_(samples) {}

  explicit operator bool() const { return static_cast<bool>(choose_); }
  /// Throws UsageError for batches that cannot be.
  std::shared_ptr<const BatchList> of(std::uint64_t seed, std::int64_t epoch) const;

 private:
  ChooseBatches choose_;
  std::int64_t samples_;  ///< of the data set
  mutable std::shared_ptr<const BatchList> latest_;
  mutable std::uint64_t seed_ = 0;
  mutable std::int64_t epoch_ = -1;
};

}  // namespace hortator::data
