#include "parallel/data_parallel/step_votes.hpp"

#include <array>
#include <cstdint>
#include <utility>

#include "mpi/collectives.hpp"

namespace hortator::parallel {

void StepVotes::append_to(std::vector<float>& marks) const {
  const auto mine = ask_();
  for (const bool wanted : {mine.stop_in_minutes, mine.stop_in_seconds, mine.save}) marks.push_back(wanted ? 1 : 0);
}

void StepVotes::apply_verdict(std::span<const float> heard) {
  apply_verdict({.stop_in_minutes = heard[0] > 0, .stop_in_seconds = heard[1] > 0, .save = heard[2] > 0});
}

void StepVotes::apply_verdict(const Ballot& ballot) {
  heard_.stop_in_minutes |= ballot.stop_in_minutes;
  heard_.stop_in_seconds |= ballot.stop_in_seconds;
  heard_.save |= ballot.save;
  stop_is_fresh_ = save_is_fresh_ = true;
}

Ballot StepVotes::count_stop(const mpi::Communicator& host) {
  if (!std::exchange(stop_is_fresh_, false)) {
    exchange(host);
    stop_is_fresh_ = false;
  }
  return heard_;
}

bool StepVotes::count_save(const mpi::Communicator& host) {
  if (!std::exchange(save_is_fresh_, false)) {
    exchange(host);
    save_is_fresh_ = false;
  }
  return std::exchange(heard_.save, false);
}

void StepVotes::exchange(const mpi::Communicator& host) {
  const auto mine = ask_();
  std::array<std::uint8_t, marks> wanted = {mine.stop_in_minutes, mine.stop_in_seconds, mine.save};
  mpi::all_reduce<std::uint8_t>(host, wanted, MPI_MAX);
  apply_verdict({.stop_in_minutes = wanted[0] > 0, .stop_in_seconds = wanted[1] > 0, .save = wanted[2] > 0});
}

}  // namespace hortator::parallel
