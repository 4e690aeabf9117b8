#pragma once

#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <functional>
#include <hortator/detail/batch_source.hpp>
#include <memory>
#include <optional>

#include "data/loader/dispatcher.hpp"
#include "data/loader/prefetcher.hpp"
#include "data/sharding/batch_distribution.hpp"

namespace hortator::data {

/// Copies batches from page-locked memory to a device on a separate stream, while the device works on earlier batches.
/// Does not wait for the device. Safe for several threads.
class DeviceUploader {
 public:
  explicit DeviceUploader(c10::Device device);

  /// Replaces the batch's tensors by copies on the device. They must not be used before the returned event.
  c10::Event upload(void* batch, const BatchSource& source) const;
  /// Lets the current stream use the batch after `arrival`. The batch's memory is not reused before the work on the
  /// current stream is done.
  void hand_over(void* batch, const BatchSource& source, const c10::Event& arrival) const;

 private:
  c10::impl::VirtualGuardImpl device_;
  c10::Stream stream_;
};

struct PassPlan {
  BatchDistribution distribution;
  std::int64_t first_step = 0;  ///< earlier batches are skipped
  Ahead ahead = {};
  std::shared_ptr<const DeviceUploader> uploader = {};  ///< copies batches to the device; null: they stay on the host
  /// Set if ranks read their own parts: gathers a number from every rank. @collective
  std::function<std::vector<std::int64_t>(std::int64_t)> gather_rows = {};
};

/// One pass over a loader's data, from its first batch on this rank to its last.
class RunningPass {
 public:
  /// `reader` is called only if this rank reads. `dispatcher` may be null.
  RunningPass(const PassPlan& plan, const std::function<std::shared_ptr<StepReader>()>& reader,
              const BatchSource& source, std::shared_ptr<Dispatcher> dispatcher);
  ~RunningPass();
  RunningPass(const RunningPass&) = delete;
  RunningPass& operator=(const RunningPass&) = delete;

  /// Whether there are no more batches. For a stream, reads the first batch to find out.
  bool at_end();
  /// Returns the next batch. Call it only after at_end() has returned false.
  Delivery next();

  bool hurries() const {
    return deliveries_->is_hurried();
  }  ///< whether the loop asks for the next batch without delay
  const BatchDistribution& distribution() const { return distribution_; }
  std::int64_t steps() const { return steps_; }  ///< handed out or skipped

 private:
  Deliver make_deliver(const std::function<std::shared_ptr<StepReader>()>& reader, const BatchSource& source);
  Delivery take();
  Delivery take_own();
  void exchange_rows(std::int64_t new_rows);

  BatchDistribution distribution_;
  std::int64_t steps_;
  std::shared_ptr<Dispatcher> dispatcher_;
  std::uint64_t number_;  ///< the dispatcher's number of the pass
  std::function<std::vector<std::int64_t>(std::int64_t)> gather_rows_;
  std::vector<std::int64_t> rank_rows_;  ///< new rows of all ranks, for the waiting delivery
  std::optional<Delivery> waiting_;
  std::unique_ptr<Prefetcher> deliveries_;  // last member: its threads use the others
};

}  // namespace hortator::data
