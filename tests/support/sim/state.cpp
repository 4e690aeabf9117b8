#include "support/sim/state.hpp"

namespace hortator::sim {

// None of these is destroyed: static objects of other libraries release device memory at exit.
std::recursive_mutex& state_lock() {
  static auto& lock = *new std::recursive_mutex;
  return lock;
}

machine::RaceDetector& races() {
  static auto& detector = *new machine::RaceDetector;
  return detector;
}

Counts& mutable_counts() {
  static auto& all = *new Counts;
  return all;
}

Counts counts() {
  const std::scoped_lock lock(state_lock());
  return mutable_counts();
}

std::vector<std::string> take_findings() {
  const std::scoped_lock lock(state_lock());
  return races().take_findings();
}

}  // namespace hortator::sim
