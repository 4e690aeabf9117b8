#pragma once

#include <torch/data/example.h>

#include <c10/core/Device.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <hortator/detail/dataset_source.hpp>
#include <hortator/export.hpp>
#include <hortator/sampler.hpp>
#include <hortator/state_dict.hpp>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

namespace hortator {

namespace data {
class LoaderCore;
}

/// A sample, or a batch of them: `data` and its `target`. The same type as torch::data's.
template <typename Data = at::Tensor, typename Target = at::Tensor>
using Example = torch::data::Example<Data, Target>;

/// How samples are shuffled, as a function of (seed, epoch) alone: each computed by itself, in no memory; or as the
/// reference's seedable sampler does, number for number, in 8 bytes a sample.
enum class ShuffleOrder { counter, randperm };

struct LoaderOptions {
  std::int64_t batch_size = 1;  ///< samples a rank and step; with DataOptions::split_batches, of all ranks together
  bool shuffle = false;         ///< another order in each epoch, the same on any number of ranks
  ShuffleOrder order = ShuffleOrder::counter;   ///< of `shuffle`
  std::shared_ptr<const Sampler> sampler = {};  ///< an order of its own, in place of `shuffle`
  bool drop_last = false;                       ///< leave out the last samples that fill no batch on every rank
  int prefetch = 2;  ///< batches read ahead, by all workers together; 0: the loop reads them itself
  /// Threads that read ahead, each a batch at a time; at least one batch is read ahead for each. With several, the data
  /// set and the joining function are called by several threads at once: they must be const, and safe for that.
  int workers = 1;
  bool pin_memory = false;  ///< for a GPU: workers leave batches in page-locked memory, from where they are copied fast
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
  bool non_blocking = false;  ///< copies from page-locked memory go on while the loop's body runs
  std::uint64_t seed = 0;
  std::function<void()> check_alive = {};  ///< called when a pass begins: throws when the Accelerator is gone
  /// Called before each batch. There is no reading ahead then: what the data set draws at random belongs to the turn.
  std::function<void(const BatchTurn&)> before_batch = {};
};

/// The part of a loader that does not depend on the type of its batches. Copies share one state.
class HORTATOR_API LoaderBase {
 public:
  LoaderBase(std::unique_ptr<data::BatchSource> source, const LoaderOptions& options);

  std::int64_t size() const;              ///< batches of this rank in a whole pass
  std::int64_t dataset_size() const;      ///< samples
  std::int64_t batch_size() const;        ///< as given in the options
  std::int64_t total_batch_size() const;  ///< samples of all ranks in one step

  std::int64_t epoch() const;  ///< passes that ran to their end
  /// The epoch of the next pass. It begins at the first batch, or, when `epoch` is the one that load() restored, where
  /// that stopped.
  void set_epoch(std::int64_t epoch);

  std::int64_t first_step()
      const;               ///< batches of the next pass that an earlier run has had: those before the loaded position
  bool iterating() const;  ///< between a pass's begin and its end, or the break out of it
  bool end_of_dataloader() const;    ///< already true in the loop's body at the last batch
  bool begins_step() const;          ///< the batch in the loop's body is the first of this rank's in its step
  bool ends_step() const;            ///< it is the last of them
  bool in_last_step() const;         ///< no step comes after its own
  std::int64_t remainder() const;    ///< samples in the last step of all ranks that repeat none; 0 or -1: all of them
  std::int64_t new_samples() const;  ///< of all ranks' batches in the loop's body together, those that repeat none
  std::int64_t position() const;     ///< samples of the epoch's global order handed out so far, to all ranks
  std::chrono::steady_clock::time_point started() const;  ///< when the latest pass began

  /// Seed, epoch and position: enough to go on after the batch last handed out, on any number of ranks.
  StateDict state() const;
  void load(const StateDict& state);

  /// Of a prepared loader: whether the last batches of all ranks are filled up. Not within a loop.
  bool even_batches() const;
  void set_even_batches(bool even);

  void bind(const LoaderBinding& binding);
  bool is_bound() const;
  bool shares_state_with(const LoaderBase& other) const { return core_ == other.core_; }

 protected:
  /// One pass, as long as it lives. Destroying it early breaks the pass off and ends the reading thread.
  class HORTATOR_API Pass {
   public:
    explicit Pass(std::shared_ptr<data::LoaderCore> core);
    Pass(Pass&& other) noexcept = default;
    Pass& operator=(Pass&& other) noexcept;
    ~Pass();

    std::shared_ptr<void> next();  ///< the next batch, or nothing at the end

   private:
    void leave() noexcept;

    std::shared_ptr<data::LoaderCore> core_;
    std::uint64_t number_;
  };

  Pass begin_pass() const { return Pass(core_); }

 private:
  std::shared_ptr<data::LoaderCore> core_;
};

/// Batches of a data set, for `for (auto& batch : loader)`. By itself it deals to one rank and leaves batches on the
/// CPU; Accelerator::prepare() makes it deal to all of them and move batches to the device.
///
/// Each loop is one pass over the data set. After a break the next loop repeats the epoch from its first batch; a loop
/// over a loader that is in a loop already takes the pass over, and the outer one throws. An exception of the data set
/// comes out of the loop, at its batch, with the sample named and itself nested. Samples are read without gradients, on
/// other threads than the loop's unless prefetch is 0.
template <typename Batch>
class DataLoader : public LoaderBase {
 public:
  using LoaderBase::LoaderBase;

  class Iterator {
   public:
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;

    explicit Iterator(Pass pass) : pass_(std::move(pass)), batch_(pass_.next()) {}

    Batch& operator*() const { return *static_cast<Batch*>(batch_.get()); }
    Batch* operator->() const { return &**this; }
    Iterator& operator++() {
      batch_.reset();
      batch_ = pass_.next();
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& it, std::default_sentinel_t) { return it.batch_ == nullptr; }

   private:
    Pass pass_;
    std::shared_ptr<void> batch_;
  };

  Iterator begin() const { return Iterator(begin_pass()); }
  std::default_sentinel_t end() const { return {}; }
};

namespace detail {
template <typename Dataset, typename Read>
auto make_loader(Dataset dataset, Read read, const LoaderOptions& options) {
  using Source = DatasetSource<Dataset, Read>;
  return DataLoader<typename Source::Batch>(std::make_unique<Source>(std::move(dataset), std::move(read)), options);
}
}  // namespace detail

/// A loader over anything with `size()` and `get(i)`: a tensor, a number, an Example, pair or tuple of them. A data set
/// that can read many samples at once has `get_batch(std::span<const std::int64_t>)`, which makes the batches itself.
template <typename Dataset>
auto data_loader(Dataset dataset, const LoaderOptions& options = {}) {
  if constexpr (detail::BatchDataset<Dataset>) {
    return detail::make_loader(std::move(dataset), detail::ReadBatch{}, options);
  } else {
    static_assert(detail::SampleDataset<Dataset>,
                  "a data set has size() and get(i), or size() and get_batch(std::span<const std::int64_t>)");
    return detail::make_loader(std::move(dataset), detail::ReadSamples<detail::DefaultJoin>{}, options);
  }
}

/// The same with a function of the user's that makes a batch of a std::vector of samples.
template <typename Dataset, typename Join>
auto data_loader(Dataset dataset, const LoaderOptions& options, Join join) {
  static_assert(detail::SampleDataset<Dataset>,
                "a data set whose samples are joined by a function has size() and get(i)");
  return detail::make_loader(std::move(dataset), detail::ReadSamples<Join>{std::move(join)}, options);
}

}  // namespace hortator
