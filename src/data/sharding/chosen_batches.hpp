#pragma once

#include <cstdint>
#include <hortator/detail/batch_source.hpp>
#include <memory>

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

}  // namespace hortator::data
