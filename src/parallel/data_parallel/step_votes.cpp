#include "parallel/data_parallel/step_votes.hpp"

#include <array>
#include <cstdint>
#include <utility>

#include "mpi/collectives.hpp"

namespace hortator::parallel {

Ballot StepVotes::ballot() const {
  auto mine = ask_();
  mine.bad_loss = bad_loss_;
  return mine;
}

void StepVotes::apply_verdict(const Ballot& all) {
  verdict_.stop_in_minutes |= all.stop_in_minutes;
  verdict_.stop_in_seconds |= all.stop_in_seconds;
  verdict_.save |= all.save;
  verdict_.bad_loss |= all.bad_loss;
  stop_is_fresh_ = save_is_fresh_ = loss_is_fresh_ = true;
}

Ballot StepVotes::count_stop(const mpi::Communicator& host) {
  if (!std::exchange(stop_is_fresh_, false)) {
    exchange(host);
    stop_is_fresh_ = false;
  }
  return verdict_;
}

bool StepVotes::count_save(const mpi::Communicator& host) {
  if (!std::exchange(save_is_fresh_, false)) {
    exchange(host);
    save_is_fresh_ = false;
  }
  return std::exchange(verdict_.save, false);
}

bool StepVotes::count_bad_loss(const mpi::Communicator& host) {
  if (!loss_is_fresh_) exchange(host);
  return verdict_.bad_loss;
}

void StepVotes::forget_losses() { verdict_.bad_loss = loss_is_fresh_ = bad_loss_ = false; }

void StepVotes::exchange(const mpi::Communicator& host) {
  const auto mine = ballot();
  std::array<std::uint8_t, 4> votes = {mine.stop_in_minutes, mine.stop_in_seconds, mine.save, mine.bad_loss};
  mpi::all_reduce<std::uint8_t>(host, votes, mpi::Op::max);
  apply_verdict({.stop_in_minutes = votes[0] > 0,
                 .stop_in_seconds = votes[1] > 0,
                 .save = votes[2] > 0,
                 .bad_loss = votes[3] > 0});
}

}  // namespace hortator::parallel
