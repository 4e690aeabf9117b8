#pragma once

#include <c10/core/Event.h>

#include <hortator/tracker.hpp>
#include <hortator/training/progress.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace hortator::observe {

using NamedValues = std::vector<std::pair<std::string, Loggable>>;

/// A record whose numbers may still be on their way from a device: they travel behind the work that the device has been
/// given already, and nobody waits for them until read(), a step later.
class LateRecord {
 public:
  LateRecord(std::int64_t step, double time, const NamedValues& values);

  bool is_here() const { return !copied_; }
  bool has_come() const { return !copied_ || copied_->query(); }  ///< would read() wait?
  TrackerRecord read() const;

 private:
  std::int64_t step_;
  double time_;
  std::vector<std::pair<std::string, std::variant<double, at::Tensor>>> values_;
  std::optional<c10::Event> copied_;  ///< nothing: no number was on a device
};

}  // namespace hortator::observe
