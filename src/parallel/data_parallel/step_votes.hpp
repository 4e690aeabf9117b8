#pragma once

#include <functional>

#include "mpi/communicator.hpp"

namespace hortator::parallel {

/// What a rank wants all ranks to do together at the end of a step.
struct Ballot {
  bool stop_in_minutes = false;
  bool stop_in_seconds = false;
  bool save = false;
};

/// Counts the ranks' ballots. They travel as step signals (step_signals.hpp), which costs nothing; a step without a
/// reduction of gradients has one for the ballots. What one rank votes for, all ranks learn at the same step.
class StepVotes {
 public:
  /// `ask` returns this rank's ballot, and is called whenever one is sent.
  explicit StepVotes(std::function<Ballot()> ask) : ask_(std::move(ask)) {}

  /// This rank's ballot, to be sent with gradients.
  Ballot ballot() const { return ask_(); }
  /// Must be called with what all ranks' ballots say together.
  void apply_verdict(const Ballot& all);

  /// What any rank has voted for since the last call. @collective unless gradients were reduced since then
  Ballot count_stop(const mpi::Communicator& host);
  bool count_save(const mpi::Communicator& host);

 private:
  void exchange(const mpi::Communicator& host);

  std::function<Ballot()> ask_;
  Ballot verdict_;
  bool stop_is_fresh_ = false;  ///< a verdict has arrived since count_stop()
  bool save_is_fresh_ = false;
};

}  // namespace hortator::parallel
