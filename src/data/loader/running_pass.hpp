#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "data/loader/delivering.hpp"
#include "data/loader/device_lane.hpp"
#include "data/loader/prefetcher.hpp"
#include "data/sharding/deal.hpp"

namespace hortator::data {

struct PassPlan {
  Deal deal;
  std::int64_t first_step = 0;  ///< batches before it are left out
  Ahead ahead = {};
  std::shared_ptr<const DeviceLane> lane = {};  ///< by which batches come to the device; null: they stay where they are
  /// Where ranks read parts of their own: what all of them say.
  std::function<std::vector<std::int64_t>(std::int64_t)> tell_all = {};
};

/// One pass over a loader's data, from its first batch on this rank to its last.
class RunningPass {
 public:
  /// `reader` is asked for one only where this rank reads. `dispatcher` may be null.
  RunningPass(const PassPlan& plan, const std::function<std::shared_ptr<StepReader>()>& reader,
              const BatchSource& source, std::shared_ptr<Dispatcher> dispatcher);
  ~RunningPass();
  RunningPass(const RunningPass&) = delete;
  RunningPass& operator=(const RunningPass&) = delete;

  /// Whether no batch comes any more. To tell it of a stream before its first batch, that is read.
  bool at_end();
  /// The next batch; at_end() was asked before, and is false.
  Delivery next();

  bool hurries() const { return deliveries_->rests(); }  ///< its loop asks for the next batch at once
  const Deal& deal() const { return deal_; }
  std::int64_t steps() const { return steps_; }  ///< handed out or left out

 private:
  Deliver way(const std::function<std::shared_ptr<StepReader>()>& reader, const BatchSource& source);
  Delivery take();
  Delivery take_own();
  void go_in_step(std::int64_t new_rows);

  Deal deal_;
  std::int64_t steps_;
  std::shared_ptr<Dispatcher> dispatcher_;
  std::uint64_t number_;  ///< the dispatcher's
  std::function<std::vector<std::int64_t>(std::int64_t)> tell_all_;
  std::vector<std::int64_t> told_;  ///< of the delivery that waits
  std::optional<Delivery> waiting_;
  std::unique_ptr<Prefetcher> deliveries_;  // last: its thread uses the rest
};

}  // namespace hortator::data
