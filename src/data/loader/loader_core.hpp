#pragma once

#include <hortator/datasets/loader_base.hpp>
#include <optional>

#include "data/loader/running_pass.hpp"
#include "data/orders/order.hpp"
#include "data/sharding/chosen_batches.hpp"

namespace hortator::data {

/// What all copies of a loader share: where it stands, and the pass that is running. Used by the loop's thread only;
/// the reading thread sees the source and the pass's plan, which do not change while it lives.
class LoaderCore {
 public:
  LoaderCore(Contents contents, const LoaderOptions& options);
  ~LoaderCore();

  /// Breaks off a running pass; returns the new one's number. `skip`: so many of the epoch's batches are not wanted.
  std::uint64_t begin(std::int64_t skip);
  std::shared_ptr<void> next(std::uint64_t pass);
  void leave(std::uint64_t pass) noexcept;

  void bind(const LoaderBinding& binding);
  void set_even_batches(bool even);
  void set_epoch(std::int64_t epoch);
  StateDict state() const;
  void load(const StateDict& state);

  /// Of the latest pass; before the first one, of that one.
  Deal deal() const { return latest_ ? *latest_ : Deal(shard(binding_, 0), nullptr); }
  std::int64_t step() const { return handed_out_ - 1; }  ///< whose batch is in the loop's body

  const LoaderOptions& options() const { return options_; }
  const LoaderBinding& binding() const { return binding_; }
  const BatchSource& source() const;
  bool is_stream() const { return contents_.stream != nullptr; }
  bool has_shards() const { return is_stream() && contents_.stream->has_shards(); }
  bool varies() const { return static_cast<bool>(batches_); }
  std::optional<std::int64_t> size() const;          ///< batches of this rank in a whole pass
  std::optional<std::int64_t> dataset_size() const;  ///< samples
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
  std::int64_t dealt() const;
  std::int64_t told(std::uint64_t seed, std::int64_t epoch) const;
  BatchShard shard(const LoaderBinding& binding, std::int64_t start) const;
  std::unique_ptr<const Order> order() const;
  std::string order_name() const;
  std::shared_ptr<const Listing> listing() const;
  std::unique_ptr<RunningPass> start(std::int64_t start, std::int64_t first_step);
  std::shared_ptr<StepReader> reader(const Deal& deal, std::shared_ptr<const Listing> listing);
  std::shared_ptr<StepReader> reader_of_part(const BatchShard& shard);
  std::shared_ptr<void> take();
  void bring_to_device(const Delivery& delivery) const;
  void finish();
  std::uint64_t seed() const;
  void refuse_in_loop(std::string_view deed) const;
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
  std::shared_ptr<const StateDict> stream_state_;  ///< at that position, if the stream says where it is
  bool resuming_ = false;                          ///< the next pass begins at position_, not at 0
  bool at_end_ = false;
  bool in_last_step_ = false;
  std::int64_t handed_out_ = 0;  ///< batches of the latest pass
  std::optional<Deal> latest_;   ///< pass
  std::chrono::steady_clock::time_point started_;

  std::uint64_t passes_ = 0;
  Rest rest_ = Rest::when_hurried;          ///< as the last pass was gone through
  std::shared_ptr<const DeviceLane> lane_;  ///< of the latest pass; null where batches are placed when they are taken
  std::unique_ptr<RunningPass> running_;    // last: its thread reads the source
};

}  // namespace hortator::data
