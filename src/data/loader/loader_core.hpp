#pragma once

#include <hortator/datasets/loader_base.hpp>
#include <optional>

#include "data/loader/batch_random.hpp"
#include "data/loader/running_pass.hpp"
#include "data/orders/order.hpp"
#include "data/sharding/listing.hpp"

namespace hortator::data {

/// The state that all copies of a loader share: its position and the running pass. Used by the loop's thread only. The
/// reading threads use only the source and the pass's plan, which do not change during the pass.
class LoaderCore {
 public:
  LoaderCore(Contents contents, const LoaderOptions& options);
  ~LoaderCore();

  /// Ends a running pass and begins a new one, without the first `skip` batches of the epoch. Returns the pass's
  /// number.
  std::uint64_t begin(std::int64_t skip);
  std::shared_ptr<void> next(std::uint64_t pass);
  void leave(std::uint64_t pass) noexcept;

  void bind(const LoaderBinding& binding);
  void set_even_batches(bool even);
  void set_epoch(std::int64_t epoch);
  StateDict state() const;
  void load(const StateDict& state);

  /// The distribution of the latest pass, or before the first pass of that one.
  BatchDistribution distribution() const { return latest_ ? *latest_ : BatchDistribution(shard(binding_, 0), nullptr); }
  std::int64_t step() const { return handed_out_ - 1; }  ///< the step whose batch is in the loop's body

  const LoaderOptions& options() const { return options_; }
  const LoaderBinding& binding() const { return binding_; }
  const BatchSource& source() const;
  bool is_stream() const { return contents_.stream != nullptr; }
  bool has_shards() const { return is_stream() && contents_.stream->has_shards(); }
  bool varies() const { return static_cast<bool>(batches_); }
  std::optional<std::int64_t> size() const;          ///< batches of this rank in a whole pass, if known
  std::optional<std::int64_t> dataset_size() const;  ///< samples, if known
  std::int64_t total_batch_size() const { return varies() ? 0 : shard(binding_, 0).total_batch_size(); }
  bool is_bound() const { return bound_; }
  std::int64_t epoch() const { return epoch_; }
  std::int64_t position() const { return position_; }
  std::int64_t first_step() const;
  bool iterating() const { return running_ != nullptr; }
  bool at_end() const { return at_end_; }
  bool begins_step() const { return handed_out_ % binding_.parts == 1 % binding_.parts; }
  bool ends_step() const { return handed_out_ % binding_.parts == 0; }
  bool in_last_step() const { return in_last_step_; }
  std::chrono::steady_clock::time_point started() const { return started_; }

 private:
  /// Positions in this epoch's order; `endless` for streams, whose length is only known at their end.
  std::int64_t epoch_samples() const;
  /// Samples of the data set, or number of chosen batches; -1 for a stream of unknown length.
  std::int64_t known_samples(std::uint64_t seed, std::int64_t epoch) const;
  BatchShard shard(const LoaderBinding& binding, std::int64_t start) const;
  /// The same samples in single batches: each of shard() has `joined` of them.
  BatchShard shard_of_parts(LoaderBinding binding, std::int64_t start) const;
  std::unique_ptr<const Order> order() const;
  std::string order_name() const;
  std::shared_ptr<const Listing> listing() const;
  std::unique_ptr<RunningPass> start(std::int64_t start, std::int64_t first_step);
  std::shared_ptr<StepReader> reader(const BatchShard& shard, std::shared_ptr<const Listing> listing);
  std::shared_ptr<StepReader> reader_of_part(const BatchShard& shard);
  std::shared_ptr<void> take();
  void bring_to_device(const Delivery& delivery) const;
  void finish();
  void warn_of_empty_epoch();
  std::uint64_t seed() const;
  DrawSeeds draw_seeds() const;
  void refuse_in_loop(std::string_view action) const;
  void check_same_samples(const StateDict& state) const;

  Contents contents_;
  LoaderOptions options_;
  ChosenBatches batches_;
  std::shared_ptr<const Sampler> sampler_;
  LoaderBinding binding_;
  bool bound_ = false;

  std::optional<std::uint64_t> loaded_seed_;
  std::int64_t epoch_ = 0;
  std::int64_t position_ = 0;
  std::shared_ptr<const StateDict> stream_state_;  ///< at position_, if the stream reports its state
  bool resuming_ = false;                          ///< whether the next pass begins at position_ instead of 0
  bool at_end_ = false;
  bool warned_of_empty_epoch_ = false;
  bool in_last_step_ = false;
  std::int64_t handed_out_ = 0;              ///< batches of the latest pass, including skipped ones
  std::optional<BatchDistribution> latest_;  ///< distribution of the latest pass
  std::chrono::steady_clock::time_point started_;

  std::uint64_t passes_ = 0;
  WorkerPause pause_ = WorkerPause::when_hurried;  ///< chosen by how fast the loop of the last pass was
  std::shared_ptr<const DeviceUploader>
      uploader_;                          ///< of the latest pass; null if batches are copied when they are taken
  std::unique_ptr<RunningPass> running_;  // last: its thread reads the source
};

/// Seconds that loops of this process have waited for batches so far, for all loaders together.
double waited();
/// Samples that these loops have taken so far, those of all ranks together.
std::int64_t samples_taken();

}  // namespace hortator::data
