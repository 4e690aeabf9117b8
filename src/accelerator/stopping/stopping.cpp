#include "accelerator/stopping/stopping.hpp"

#include <algorithm>
#include <array>

#include "core/log.hpp"
#include "mpi/collectives.hpp"
#include "runtime/ending/stop_signal.hpp"
#include "runtime/identity/outcome.hpp"

namespace hortator::accelerator {

using namespace std::chrono_literals;

Stopping::Stopping(const mpi::Communicator& host, const checkpoint::BackgroundSave& saves)
    : host_(host), saves_(saves), votes_([this] { return ballot(); }) {}

parallel::Ballot Stopping::ballot() const {
  const bool is_main = host_.rank() == 0;
  const auto others = is_main ? other_saves() : DueSaves();
  return {.stop_in_minutes = runtime::minutes_signal_received() || (is_main && time_is_nearly_over()),
          .stop_in_seconds = runtime::since_seconds_signal().has_value(),
          .save = is_main && (pace_.is_due() || others.on_nodes || others.in_project)};
}

// Applies if the scheduler sends no signal: the last save must complete in time.
bool Stopping::time_is_nearly_over() const {
  const auto left = job_time_.known_left();
  return left && *left < job_time_.margin() + 2 * time_to_save(save_times()).value_or(0s);
}

SaveTimes Stopping::save_times() const {
  return {.longest = std::max(pace_.longest_until_complete(), saves_.longest()), .under_way = saves_.under_way_for()};
}

bool Stopping::agree_to_stop() {
  const auto asked = votes_.count_stop(host_);
  in_seconds_ = asked.stop_in_seconds;
  return asked.stop_in_minutes || asked.stop_in_seconds;
}

// With several reasons to save, all ranks ask rank 0 which one it is.
bool Stopping::agree_to_save() {
  return votes_.count_save(host_) && (!other_saves_ || mpi::broadcast(host_, pace_.is_due()));
}

DueSaves Stopping::agree_to_other_saves() {
  if (!other_saves_ || !votes_.has_save()) return {};
  const auto mine = other_saves();
  const auto due = mpi::broadcast(host_, std::array<bool, 3>{mine.on_nodes, mine.in_project, pace_.is_due()});
  if (!due[2]) votes_.forget_save();
  return {.on_nodes = due[0], .in_project = due[1]};
}

bool Stopping::agree_that_save_fits() {
  if (!in_seconds_) return true;
  const auto mine = runtime::since_seconds_signal().value_or(0ms).count();
  const std::chrono::milliseconds since(mpi::all_reduce(host_, static_cast<std::int64_t>(mine), mpi::Op::max));
  return mpi::broadcast(host_, save_fits(save_times(), job_time_.until_killed(since)));
}

void Stopping::leave() {
  leaving_ = true;
  runtime::note_stopped();
}

}  // namespace hortator::accelerator
