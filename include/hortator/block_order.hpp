#pragma once

#include <cstdint>
#include <hortator/export.hpp>

namespace hortator {

struct BlockOrderOptions {
  std::int64_t block = 1;    ///< samples that are stored together: Hdf5Rows::chunk_length()
  std::int64_t window = 16;  ///< blocks that are mixed with each other: what a rank's cache should hold
};

/// A random order for data that is stored in blocks: blocks in random order, and the samples of each few blocks in a
/// row mixed with each other. Each block is read in one stretch of the epoch, where a fully random order would unpack
/// it again for nearly every sample.
///
/// A function of samples, options, seed and epoch alone, the same on every machine; takes no memory, and gives any
/// position without those before it.
class HORTATOR_API BlockOrder {
 public:
  BlockOrder(std::int64_t samples, const BlockOrderOptions& options, std::uint64_t seed, std::int64_t epoch);

  std::int64_t size() const { return samples_; }
  /// The sample at a position of the epoch. From any thread.
  std::int64_t operator()(std::int64_t position) const;

 private:
  std::int64_t slot_begin(std::int64_t slot) const;

  std::int64_t samples_;
  std::int64_t block_;
  std::int64_t window_;
  std::int64_t blocks_;
  std::uint64_t key_;
  std::int64_t short_slot_;  ///< where in the order of blocks the last, short one stands
};

}  // namespace hortator
