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

/// A record whose numbers may still be on a device. They are copied to the host behind the work that is queued on the
/// device; only read(), a step later, waits for them.
class LateRecord {
 public:
  LateRecord(std::int64_t step, double time, const NamedValues& values);

  bool is_on_host() const { return !copied_; }
  bool is_ready() const { return !copied_ || copied_->query(); }  ///< read() will not wait
  TrackerRecord read() const;

 private:
  std::int64_t step_;
  double time_;
  std::vector<std::pair<std::string, std::variant<double, at::Tensor>>> values_;
  std::optional<c10::Event> copied_;  ///< empty if no number was on a device
};

}  // namespace hortator::observe
