#pragma once

#include <functional>

#include "mpi/communicator.hpp"

namespace hortator::parallel {

/// What a rank wants all ranks to do together at the end of a step.
struct Ballot {
  bool stop_in_minutes = false;
  bool stop_in_seconds = false;
  bool save = false;
  bool bad_loss = false;  ///< a loss of this update is not finite, or a spike
};

/// Counts the ranks' ballots. They travel as step signals (step_signals.hpp), which costs nothing; a step without a
/// reduction of gradients has one for the ballots. What one rank votes for, all ranks learn at the same step.
class StepVotes {
 public:
  /// `ask` returns this rank's ballot, and is called whenever one is sent.
  explicit StepVotes(std::function<Ballot()> ask) : ask_(std::move(ask)) {}

  /// This rank's ballot, to be sent with gradients.
  Ballot ballot() const;
  /// Must be called with what all ranks' ballots say together.
  void apply_verdict(const Ballot& all);

  /// What any rank has voted for since the last call. @collective unless gradients were reduced since then
  Ballot count_stop(const mpi::Communicator& host);
  bool count_save(const mpi::Communicator& host);
  /// Whether a vote for a save has arrived that count_save() has not returned. Local; the same on all ranks.
  bool has_save() const { return verdict_.save; }
  void forget_save() { verdict_.save = false; }

  /// Adds to this rank's ballots that a loss was bad, until forget_losses().
  void report_bad_loss(bool is_bad) { bad_loss_ = is_bad; }
  /// Whether a loss of any rank was bad since forget_losses(). @collective unless gradients were reduced since then
  bool count_bad_loss(const mpi::Communicator& host);
  /// Begins another update.
  void forget_losses();

 private:
  void exchange(const mpi::Communicator& host);

  std::function<Ballot()> ask_;
  Ballot verdict_;
  bool stop_is_fresh_ = false;  ///< a verdict has arrived since count_stop()
  bool save_is_fresh_ = false;
  bool loss_is_fresh_ = false;
  bool bad_loss_ = false;  ///< of this rank
};

}  // namespace hortator::parallel
