#pragma once

#include <cstddef>
#include <cstdint>

#include "core/hash.hpp"
#include "data/sharding/batch_shard.hpp"
#include "runtime/generators/own_generator.hpp"

namespace hortator::data {

/// The seeds of the random numbers that a data set or stream draws during one pass. They depend on the position in the
/// epoch's order only: not on the rank, the thread or the time at which a sample is read.
class DrawSeeds {
 public:
  explicit DrawSeeds(std::uint64_t pass = 0) : pass_(pass) {}

  std::uint64_t of_pass() const { return core::mix(pass_, 0); }
  /// The seed of joining the batch that begins at this position, and of reading it at once.
  std::uint64_t of_batch(std::int64_t position) const { return at(position, 0); }
  /// The seed of the sample with this number at the position: a chosen batch has several at one position.
  std::uint64_t of_sample(std::int64_t position, std::uint64_t number = 0) const { return at(position, number + 1); }

  /// The seeds of a rank that reads a part of the stream, whose positions count its own samples only.
  DrawSeeds of_part(int rank) const { return DrawSeeds(core::mix(pass_, static_cast<std::uint64_t>(rank) + 1)); }

 private:
  std::uint64_t at(std::int64_t position, std::uint64_t number) const {
    return core::mix(core::mix(pass_, static_cast<std::uint64_t>(position) + 1), number);
  }

  std::uint64_t pass_;
};

/// While it lives, random numbers that this thread draws on the CPU belong to the batch at `positions`, or to the
/// sample of it that begin_sample() names, and do not change LibTorch's default generator.
class BatchRandom {
 public:
  BatchRandom(const DrawSeeds& seeds, const Positions& positions, std::size_t samples);
  ~BatchRandom();
  BatchRandom(const BatchRandom&) = delete;
  BatchRandom& operator=(const BatchRandom&) = delete;

  void begin_sample(std::size_t index);
  void begin_join();

  /// That of the batch which this thread reads, or null.
  static BatchRandom* current();

 private:
  DrawSeeds seeds_;
  Positions positions_;
  bool is_chosen_;  ///< all samples are at the first position
  runtime::OwnGenerator generator_;
  runtime::DrawFrom scope_;
  BatchRandom* outer_;
};

}  // namespace hortator::data
