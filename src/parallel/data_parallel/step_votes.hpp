#pragma once

#include <functional>
#include <span>
#include <vector>

#include "mpi/communicator.hpp"

namespace hortator::parallel {

/// What a rank wants all ranks to do together at the end of a step.
struct Ballot {
  bool stop_in_minutes = false;
  bool stop_in_seconds = false;
  bool save = false;
};

/// Counts the ranks' ballots. They ride on the gradients' reduction, where they cost nothing; a step without one has a
/// reduction of their own. What one rank wants, all learn at the same step.
class StepVotes {
 public:
  /// `ask` gives this rank's ballot when one is to be sent.
  explicit StepVotes(std::function<Ballot()> ask) : ask_(std::move(ask)) {}

  /// Marks to send with gradients, and their sum over all ranks, or mean: above zero where some rank raised one.
  static constexpr std::size_t marks = 3;
  void append_to(std::vector<float>& marks) const;
  void apply_verdict(std::span<const float> heard);

  /// What was asked for since the last time. @collective unless gradients were reduced since then
  Ballot count_stop(const mpi::Communicator& host);
  bool count_save(const mpi::Communicator& host);

 private:
  void exchange(const mpi::Communicator& host);
  void apply_verdict(const Ballot& ballot);

  std::function<Ballot()> ask_;
  Ballot heard_;
  bool stop_is_fresh_ = false;  ///< something was heard since count_stop()
  bool save_is_fresh_ = false;
};

}  // namespace hortator::parallel
