#pragma once

#include <c10/core/Device.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <hortator/datasets/sampler.hpp>
#include <hortator/detail/batch_source.hpp>
#include <hortator/export.hpp>
#include <hortator/training/state_dict.hpp>
#include <memory>
#include <optional>
#include <vector>

namespace hortator {

namespace data {
class Dispatcher;
class LoaderCore;
}  // namespace data

/// How samples are shuffled, as a function of (seed, epoch) alone: each computed by itself, in no memory; or as the
/// reference's seedable sampler does, number for number, in 8 bytes a sample.
enum class ShuffleOrder { counter, randperm };

/// Of data_loader: how samples become batches, and how they are read.
struct LoaderOptions {
  std::int64_t batch_size = 1;  ///< samples a rank and step; with DataOptions::split_batches, of all ranks together
  bool shuffle = false;         ///< another order in each epoch, the same on any number of ranks
  ShuffleOrder order = ShuffleOrder::counter;   ///< of `shuffle`
  std::shared_ptr<const Sampler> sampler = {};  ///< an order of its own, in place of `shuffle`
  bool drop_last = false;                       ///< leave out the last samples that fill no batch on every rank
  /// Batches read ahead, by all workers together; 0: the loop reads them itself, as it does meanwhile when it comes
  /// back for the next one at once and there is one worker.
  int prefetch = 2;
  /// Threads that read ahead, each a batch at a time; at least one batch is read ahead for each. With several, the data
  /// set and the joining function are called by several threads at once: they must be const, and safe for that.
  int workers = 1;
  /// For a GPU: workers put batches into page-locked memory, and have them copied to the device on a stream of its own
  /// while the loop's body runs. Off: they are copied when the loop comes to them, as DataOptions::non_blocking says.
  bool pin_memory = true;
  std::optional<std::uint64_t> seed = {};  ///< of the shuffled order; by default the Accelerator's
};

/// A batch that is about to be read, in numbers that mean the same on any number of ranks.
struct BatchTurn {
  std::int64_t epoch = 0;
  std::int64_t position = 0;  ///< samples of the epoch's global order before the step that it belongs to
  std::int64_t place = 0;     ///< of the batch within that step; -1: there is none, the pass is over
};

/// What an Accelerator tells a loader about the ranks that share the data set.
struct LoaderBinding {
  int rank = 0;
  int world = 1;
  int parts = 1;  ///< batches of each rank in one step of all ranks
  bool split_batches = false;
  bool even_batches = true;
  c10::Device device = c10::Device(c10::kCPU);
  bool device_placement = true;
  bool non_blocking = false;  ///< nobody waits for copies from page-locked memory; see LoaderOptions::pin_memory
  std::uint64_t seed = 0;
  /// One rank of each node reads for all of its ranks, and hands out by this; the ranks' loops begin and end together.
  std::shared_ptr<data::Dispatcher> dispatcher = {};
  /// For a stream that gives each rank a part of its own: what all ranks say, in their order.
  std::function<std::vector<std::int64_t>(std::int64_t)> gather_rows = {};
  std::function<void()> check_alive = {};  ///< called when a pass begins: throws when the Accelerator is gone
  /// Called before each batch. There is no reading ahead then: what the data set draws at random belongs to the turn.
  std::function<void(const BatchTurn&)> before_batch = {};
};

/// The part of a loader that does not depend on the type of its batches. Copies share one state.
class HORTATOR_API LoaderBase {
 public:
  LoaderBase(data::Contents contents, const LoaderOptions& options);

  bool has_size() const;                  ///< false: a stream that does not say how many samples it has
  std::int64_t size() const;              ///< batches of this rank in a whole pass
  std::int64_t dataset_size() const;      ///< samples
  std::int64_t batch_size() const;        ///< as given in the options
  std::int64_t total_batch_size() const;  ///< samples of all ranks in one step; 0: it varies
  bool is_stream() const;
  bool has_shards() const;  ///< of a stream: whether it gives each rank a part of its own
  bool can_travel() const;  ///< whether one rank can read batches for others

  std::int64_t epoch() const;  ///< passes that ran to their end
  /// The epoch of the next pass. It begins at the first batch, or, when `epoch` is the one that load() restored, where
  /// that stopped.
  void set_epoch(std::int64_t epoch);

  /// Batches of the next pass that an earlier run has had: those before the loaded position.
  std::int64_t first_step() const;
  bool iterating() const;            ///< between a pass's begin and its end, or the break out of it
  bool end_of_dataloader() const;    ///< already true in the loop's body at the last batch
  bool begins_step() const;          ///< the batch in the loop's body is the first of this rank's in its step
  bool ends_step() const;            ///< it is the last of them
  bool in_last_step() const;         ///< no step comes after its own
  std::int64_t remainder() const;    ///< samples in the last step of all ranks that repeat none; 0 or -1: all of them
  std::int64_t new_samples() const;  ///< of all ranks' batches in the loop's body together, those that repeat none
  std::int64_t new_samples(int rank) const;  ///< of one rank's
  int ranks_in_step() const;                 ///< that have a batch in this body: the first ones
  bool is_even_step() const;                 ///< whether all ranks have one, and all of one size
  std::int64_t position() const;             ///< samples of the epoch's global order handed out so far, to all ranks
  std::chrono::steady_clock::time_point started() const;  ///< when the latest pass began

  /// Seed, epoch and position: enough to go on after the batch last handed out, on any number of ranks.
  StateDict state() const;
  void load(const StateDict& state);

  /// Of a prepared loader: whether the last batches of all ranks are to be filled up. Those of streams, and those that
  /// one rank of each node reads, are in any case. Not within a loop.
  bool even_batches() const;
  void set_even_batches(bool even);

  void bind(const LoaderBinding& binding);
  bool is_bound() const;
  bool shares_state_with(const LoaderBase& other) const { return core_ == other.core_; }

  /// Passes over this handle begin so many batches later; other handles of the loader are left as they are.
  void skip_first(std::int64_t batches);

 protected:
  /// One pass, as long as it lives. Destroying it early breaks the pass off and ends the reading thread.
  class HORTATOR_API Pass {
   public:
    Pass(std::shared_ptr<data::LoaderCore> core, std::int64_t skip);
    Pass(Pass&& other) noexcept = default;
    Pass& operator=(Pass&& other) noexcept;
    ~Pass();

    std::shared_ptr<void> next();  ///< the next batch, or nothing at the end

   private:
    void leave() noexcept;

    std::shared_ptr<data::LoaderCore> core_;
    std::uint64_t number_;
  };

  Pass begin_pass() const { return {core_, skip_}; }

 private:
  std::shared_ptr<data::LoaderCore> core_;
  std::int64_t skip_ = 0;
};

}  // namespace hortator
