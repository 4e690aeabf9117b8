#pragma once

#include "mpi/communicator.hpp"

namespace hortator::parallel {

/// Lets ranks that have run out of batches follow the others: before each collective, the ranks that still have batches
/// announce it, and the others listen and take part.
class UnevenInputs {
 public:
  enum class Collective { none, plan_buckets, reduce_bucket, broadcast_buffers, judge_gradients };
  struct Announcement {
    Collective what = Collective::none;  ///< none if no rank has batches
    int model = 0;
    int speaker = 0;  ///< the highest rank that still has batches
  };

  explicit UnevenInputs(const mpi::Communicator& host) : host_(host) {}

  /// Returns the highest rank that still has batches. Throws on all ranks if they announce different collectives.
  /// @collective with listen()
  int announce(Collective what, int model) const;
  /// @collective with announce()
  Announcement listen() const;

 private:
  Announcement exchange(std::int64_t code) const;

  const mpi::Communicator& host_;
};

}  // namespace hortator::parallel
