#include "parallel/data_parallel/step_signals.hpp"

#include <stdexcept>

namespace hortator::parallel {
namespace {

constexpr std::size_t vote_count = 4;

/// Visits all signals of the layout in the order in which they travel; the only place that knows it.
template <typename Signals, typename Visit>
void for_each_signal(Signals& signals, const StepSignals::Layout& layout, const Visit& visit) {
  for (std::size_t i = 0; i < layout.parameters; ++i) visit(signals.used[i]);
  for (std::size_t i = 0; i < layout.arrays; ++i) visit(signals.leftovers[i]);
  if (layout.votes) {
    visit(signals.votes.stop_in_minutes);
    visit(signals.votes.stop_in_seconds);
    visit(signals.votes.save);
    visit(signals.votes.bad_loss);
  }
  if (layout.new_order) visit(signals.new_order);
  if (layout.missing) visit(signals.missing);
}

}  // namespace

std::size_t StepSignals::Layout::size() const {
  return parameters + arrays + (votes ? vote_count : 0) + (new_order ? 1 : 0) + (missing ? 1 : 0);
}

std::vector<float> StepSignals::encode(const Layout& layout) const {
  auto padded = *this;
  padded.used.resize(layout.parameters);
  padded.leftovers.resize(layout.arrays);
  std::vector<float> message;
  message.reserve(layout.size());
  for_each_signal(padded, layout, [&](bool signal) { message.push_back(signal ? 1 : 0); });
  return message;
}

StepSignals StepSignals::decode(std::span<const float> message, const Layout& layout) {
  if (message.size() != layout.size()) throw std::invalid_argument("a message of step signals has another layout");
  StepSignals signals;
  signals.used.resize(layout.parameters);
  signals.leftovers.resize(layout.arrays);
  auto next = message.begin();
  for_each_signal(signals, layout, [&](auto&& signal) { signal = *next++ > 0; });
  return signals;
}

}  // namespace hortator::parallel
