#include "parallel/pace/step_times.hpp"

#include <algorithm>
#include <utility>

namespace hortator::parallel {
namespace {

// Shorter steps consist of noise.
constexpr double min_seconds = 1e-4;

}  // namespace

StepTimes::StepTimes(int rank, int ranks) : rank_(rank), ranks_(ranks), reports_(std::min(ranks, max_reports)) {}

int StepTimes::first_of_turn() const {
  const int turns = (ranks_ + reports_ - 1) / reports_;
  return static_cast<int>(passes_ % turns) * reports_;
}

std::vector<float> StepTimes::report() {
  std::vector<float> message(message_size(), 0.0F);
  const int slot = rank_ - first_of_turn();
  if (slot >= 0 && slot < reports_)
    message[static_cast<std::size_t>(slot)] = static_cast<float>(seconds_.value_or(since_last()));
  message.back() = 1;
  return message;
}

// The last number says whether messages were added up or averaged. A rank that sent none has no time.
void StepTimes::receive(std::span<const float> message) {
  const bool is_sum = message.back() > 1.5F;
  const double scale = is_sum ? 1 : ranks_;
  for (int slot = 0; slot < reports_; ++slot) {
    const double seconds = scale * message[static_cast<std::size_t>(slot)];
    const int rank = first_of_turn() + slot;
    if (seconds > 0 && rank < ranks_) received_[rank] = seconds;
  }
  ++passes_;
  began_ = Clock::now();
}

std::vector<StepTimes::Report> StepTimes::take_reports() {
  std::vector<Report> reports;
  for (const auto& [rank, seconds] : std::exchange(received_, {}))
    reports.push_back({.rank = rank, .seconds = seconds});
  return reports;
}

StragglerWatch::StragglerWatch(int ranks, double factor, int patience)
    : factor_(factor),
      patience_(patience),
      seconds_(static_cast<std::size_t>(ranks), 0.0),
      slow_for_(static_cast<std::size_t>(ranks), 0),
      well_for_(static_cast<std::size_t>(ranks), 0),
      named_(static_cast<std::size_t>(ranks), false) {}

double StragglerWatch::median_of_others(int rank) const {
  std::vector<double> others;
  for (std::size_t i = 0; i < seconds_.size(); ++i) {
    if (i != static_cast<std::size_t>(rank) && seconds_[i] > 0) others.push_back(seconds_[i]);
  }
  if (others.empty()) return 0;
  const auto middle = others.begin() + static_cast<std::ptrdiff_t>(others.size() / 2);
  std::ranges::nth_element(others, middle);
  return *middle;
}

std::vector<StragglerWatch::Slow> StragglerWatch::note(const std::vector<StepTimes::Report>& reports) {
  for (const auto& [rank, seconds] : reports) seconds_[static_cast<std::size_t>(rank)] = seconds;
  std::vector<Slow> found;
  for (const auto& [rank, seconds] : reports) {
    const auto i = static_cast<std::size_t>(rank);
    const double median = std::max(median_of_others(rank), min_seconds);
    const bool is_slow = seconds > factor_ * median && median_of_others(rank) > 0;
    slow_for_[i] = is_slow ? slow_for_[i] + 1 : 0;
    well_for_[i] = is_slow ? 0 : well_for_[i] + 1;
    if (well_for_[i] >= patience_) named_[i] = false;
    if (named_[i] || slow_for_[i] < patience_) continue;
    named_[i] = true;
    found.push_back({.rank = rank, .factor = seconds / median});
  }
  return found;
}

}  // namespace hortator::parallel
