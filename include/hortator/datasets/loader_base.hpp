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

/// How samples are shuffled, as a function of seed and epoch only. `counter` computes each position independently and
/// uses no memory; `randperm` gives the same order as the seedable sampler of Hugging Face Accelerate and uses 8 bytes
/// a sample.
enum class ShuffleOrder { counter, randperm };

/// Options of data_loader: how samples become batches, and how they are read.
struct LoaderOptions {
  std::int64_t batch_size = 1;  ///< samples per rank and step; with DataOptions::split_batches, of all ranks together
  bool shuffle = false;         ///< a different order in each epoch, the same on any number of ranks
  ShuffleOrder order = ShuffleOrder::counter;   ///< used with `shuffle`
  std::shared_ptr<const Sampler> sampler = {};  ///< a user-defined order, instead of `shuffle`
  bool drop_last = false;  ///< leave out the last samples if they do not fill a batch on every rank
  /// Batches read ahead, by all workers together. 0: the loop itself reads. With one worker the loop also reads itself
  /// while it asks for the next batch without delay.
  int prefetch = 2;
  /// Threads that read ahead, one batch at a time each; at least one batch is read ahead for each. With several
  /// workers, the data set and the join function are called by several threads at once: they must be const and
  /// thread-safe.
  int workers = 1;
  /// For GPUs: workers put batches into page-locked memory and copy them to the device on a separate stream while the
  /// loop's body runs. false: a batch is copied when the loop gets it, as DataOptions::non_blocking sets.
  bool pin_memory = true;
  /// Seed of the shuffled order, and of random numbers that the data set draws. Default: the Accelerator's seed.
  std::optional<std::uint64_t> seed = {};
};

/// A batch that is about to be read, in numbers that mean the same on any number of ranks.
struct BatchTurn {
  std::int64_t epoch = 0;
  std::int64_t position = 0;  ///< samples of the epoch's global order before the batch's step
  std::int64_t place = 0;     ///< index of the batch within that step; -1: the pass is over
};

/// What an Accelerator sets in a loader about the ranks that share the data set.
struct LoaderBinding {
  int rank = 0;
  int world = 1;
  int parts = 1;  ///< batches of each rank in one step of all ranks
  /// Batches of a step that a rank gets as one: they are read one after the other, and their tensors are joined along
  /// dimension 0.
  int joined = 1;
  bool split_batches = false;
  bool even_batches = true;
  c10::Device device = c10::Device(c10::kCPU);
  bool device_placement = true;
  bool non_blocking = false;  ///< do not wait for copies from page-locked memory; see LoaderOptions::pin_memory
  std::uint64_t seed = 0;
  std::uint64_t number = 0;  ///< among the Accelerator's loaders: they draw different random numbers
  /// If set, one rank of each node reads for all ranks of the node and sends batches with it. The ranks' loops must
  /// begin and end together.
  std::shared_ptr<data::Dispatcher> dispatcher = {};
  /// Set for a stream that gives each rank its own part: gathers a number from every rank, in rank order. @collective
  std::function<std::vector<std::int64_t>(std::int64_t)> gather_rows = {};
  std::function<void()> check_alive = {};  ///< called when a pass begins; throws if the Accelerator is destroyed
  /// Called before each batch. If set, nothing is read ahead, so that random numbers of a device that the data set
  /// draws belong to this batch.
  std::function<void(const BatchTurn&)> before_batch = {};
  std::function<void(int part)> before_part = {};  ///< called before each of `joined` batches is read
  std::function<void()> after_batch = {};          ///< called after each batch was read
};

/// The part of a loader that does not depend on the type of its batches. Copies share one state.
class HORTATOR_API LoaderBase {
 public:
  LoaderBase(data::Contents contents, const LoaderOptions& options);

  bool has_size() const;                  ///< false for a stream that does not report its number of samples
  std::int64_t size() const;              ///< batches of this rank in a whole pass
  std::int64_t dataset_size() const;      ///< samples
  std::int64_t batch_size() const;        ///< as given in the options
  std::int64_t total_batch_size() const;  ///< samples of all ranks in one step; 0: it varies
  bool is_stream() const;
  bool has_shards() const;  ///< whether it is a stream that gives each rank its own part
  bool can_travel() const;  ///< whether one rank can read batches for others

  std::int64_t epoch() const;  ///< number of complete passes
  /// Sets the epoch of the next pass, which begins at the first batch, or at the restored position if load() has
  /// restored the same epoch.
  void set_epoch(std::int64_t epoch);

  /// The number of batches of the next pass that an earlier run has already had: those before the restored position.
  std::int64_t first_step() const;
  bool iterating() const;            ///< whether a pass has begun and not ended, by its last batch or a break
  bool end_of_dataloader() const;    ///< already true in the loop's body for the last batch
  bool begins_step() const;          ///< whether the batch in the loop's body is this rank's first in its step
  bool ends_step() const;            ///< whether it is this rank's last in its step
  bool in_last_step() const;         ///< whether its step is the last
  std::int64_t remainder() const;    ///< samples in the last step of all ranks that are no repetition; 0 or -1: all
  std::int64_t new_samples() const;  ///< samples in the current batches of all ranks that are no repetition
  std::int64_t new_samples(int rank) const;  ///< the same for one rank's batch
  int ranks_in_step() const;                 ///< number of ranks that have a batch in this step: always the first ones
  bool is_even_step() const;                 ///< whether all ranks have a batch of the same size
  std::int64_t position() const;             ///< samples of the epoch's global order handed out so far, to all ranks
  std::chrono::steady_clock::time_point started() const;  ///< when the latest pass began

  /// Seed, epoch and position: enough to continue after the latest batch, on any number of ranks.
  StateDict state() const;
  void load(const StateDict& state);

  /// Whether the last batches of all ranks are filled up, in a prepared loader. Batches of streams, and batches that
  /// one rank of each node reads, always are. Do not call set_even_batches() within a loop.
  bool even_batches() const;
  void set_even_batches(bool even);

  void bind(const LoaderBinding& binding);
  bool is_bound() const;
  bool shares_state_with(const LoaderBase& other) const { return core_ == other.core_; }

  /// Passes over this handle skip that many first batches. Other handles of the loader are not affected.
  void skip_first(std::int64_t batches);

 protected:
  /// One pass. Destroying it early ends the pass and the reading threads.
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
