#pragma once

#include <hortator/data.hpp>
#include <optional>

#include "data/batch_shard.hpp"
#include "data/order.hpp"
#include "data/prefetcher.hpp"

namespace hortator::data {

/// What all copies of a loader share: where it stands, and the pass that is running. Used by the loop's thread only;
/// the reading thread sees the source and the pass's plan, which do not change while it lives.
class LoaderCore {
 public:
  LoaderCore(std::unique_ptr<BatchSource> source, const LoaderOptions& options);
  ~LoaderCore();

  std::uint64_t begin();  ///< breaks off a running pass; returns the new one's number
  std::shared_ptr<void> next(std::uint64_t pass);
  void leave(std::uint64_t pass) noexcept;

  void bind(const LoaderBinding& binding);
  bool even_batches() const { return binding_.even_batches; }
  void set_even_batches(bool even);
  void set_epoch(std::int64_t epoch);
  StateDict state() const;
  void load(const StateDict& state);

  BatchShard shard() const { return shard(binding_, 0); }  ///< of a whole pass
  std::int64_t remainder() const;
  std::int64_t new_samples() const;

  const LoaderOptions& options() const { return options_; }
  std::int64_t dataset_size() const { return source_->size(); }
  bool is_bound() const { return bound_; }
  std::int64_t epoch() const { return epoch_; }
  std::int64_t position() const { return position_; }
  std::int64_t first_step() const { return resuming_ ? shard().size() - shard(binding_, position_).size() : 0; }
  bool iterating() const { return running_ != nullptr; }
  bool at_end() const { return at_end_; }
  bool begins_step() const { return handed_out_ % binding_.parts == 1 % binding_.parts; }
  bool ends_step() const { return handed_out_ % binding_.parts == 0; }
  bool in_last_step() const { return in_last_step_; }
  std::chrono::steady_clock::time_point started() const { return started_; }

 private:
  struct Running;

  BatchShard shard(const LoaderBinding& binding, std::int64_t start) const;
  std::unique_ptr<const Order> order() const;
  std::unique_ptr<Running> start_running(std::int64_t start);
  std::shared_ptr<void> read(const Running& running, std::int64_t step);
  std::shared_ptr<void> take();
  void finish();
  std::uint64_t seed() const;
  void refuse_in_loop(std::string_view deed) const;
  void check_same_samples(const StateDict& state) const;

  std::unique_ptr<BatchSource> source_;
  LoaderOptions options_;
  std::shared_ptr<const Sampler> sampler_;
  LoaderBinding binding_;
  bool bound_ = false;

  std::optional<std::uint64_t> loaded_seed_;
  std::int64_t epoch_ = 0;
  std::int64_t start_ = 0;  ///< where the latest pass began
  std::int64_t position_ = 0;
  bool resuming_ = false;  ///< the next pass begins at position_, not at 0
  bool at_end_ = false;
  bool in_last_step_ = false;
  std::int64_t handed_out_ = 0;  ///< batches of the latest pass
  std::chrono::steady_clock::time_point started_;

  std::uint64_t passes_ = 0;
  std::unique_ptr<Running> running_;  // last: its thread reads the source
};

}  // namespace hortator::data
