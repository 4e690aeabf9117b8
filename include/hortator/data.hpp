#pragma once

#include <torch/data/example.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <hortator/datasets/loader_base.hpp>
#include <hortator/detail/dataset_source.hpp>
#include <hortator/detail/stream_source.hpp>
#include <hortator/detail/torch_data.hpp>
#include <iterator>
#include <memory>
#include <type_traits>
#include <utility>

namespace hortator {

/// A sample, or a batch of them: `data` and its `target`. The same type as torch::data's.
template <typename Data = at::Tensor, typename Target = at::Tensor>
using Example = torch::data::Example<Data, Target>;

/// Batches of a data set, for `for (auto& batch : loader)`. An unprepared loader gives all batches to one rank and
/// leaves them on the CPU; Accelerator::prepare() makes it distribute batches to all ranks and move them to the device.
///
/// Each loop is one pass over the data set. After a break the next loop repeats the epoch from its first batch. If a
/// second loop over the same loader begins inside a loop, the outer loop throws. If the data set throws, the loop
/// throws an error that names the sample, with the exception nested in it. Samples are read without gradients, and on
/// other threads than the loop's unless prefetch is 0.
///
/// Random numbers that get(), get_batch(), a stream or the join function draw on the CPU (`torch::rand`, dropout) come
/// from a generator of their own, seeded by seed, epoch and position: they are the same on any number of ranks, however
/// far ahead they are read, and after resuming. LibTorch's default generator, from which the model draws, stays as it
/// is. A generator that you pass to an operator, `std::mt19937` and the generators of GPUs remain your own concern.
///
/// A stream's samples are distributed in their order. Every rank gets the same number of batches: the last ones repeat
/// the stream's first samples. Every rank reads the whole stream, or with DataOptions::dispatch_batches one rank of
/// each node does. On resuming, a stream is read and skipped up to the position, unless it has save(StateWriter&) const
/// and load(const StateReader&). A stream of many files can have `shard(int world, int rank)`, which gives each rank
/// some of the files: nothing is read twice, a rank with too few samples repeats its own, and the epoch must be resumed
/// on the same number of ranks.
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
auto make_loader(Dataset dataset, Read read, const LoaderOptions& options, const data::ChooseBatches& choose = {}) {
  using Source = DatasetSource<Dataset, Read>;
  data::Contents contents{.samples = std::make_unique<Source>(std::move(dataset), std::move(read)), .choose = choose};
  return DataLoader<typename Source::Batch>(std::move(contents), options);
}

template <typename Stream, typename Join>
auto make_stream_loader(Stream stream, Join join, const LoaderOptions& options) {
  using Source = StreamSourceOf<Stream, Join>;
  data::Contents contents{.stream = std::make_unique<Source>(std::move(stream), std::move(join))};
  return DataLoader<typename Source::Batch>(std::move(contents), options);
}

/// How a data set with numbered samples is read by default.
template <typename Dataset>
auto default_reading() {
  if constexpr (BatchDataset<Dataset>) {
    return ReadBatch{};
  } else if constexpr (SampleDataset<Dataset>) {
    return ReadSamples<DefaultJoin>{};
  } else {
    static_assert(TorchBatchDataset<Dataset>,
                  "a data set has size() and get(i), or size() and get_batch(std::span<const std::int64_t>)");
    return ReadTorchBatch{};
  }
}

/// A list of batches, or a function from an epoch to such a list.
template <typename B>
concept BatchChoice =
    std::convertible_to<B, data::BatchList> || std::is_invocable_r_v<data::BatchList, const B&, std::int64_t>;

template <BatchChoice B>
data::ChooseBatches choose_by(B batches) {
  if constexpr (std::convertible_to<B, data::BatchList>) {
    return [list = data::BatchList(std::move(batches))](std::uint64_t, std::int64_t) { return list; };
  } else {
    return [batches = std::move(batches)](std::uint64_t, std::int64_t epoch) { return batches(epoch); };
  }
}

template <typename Dataset>
inline constexpr bool is_numbered = BatchDataset<Dataset> || SampleDataset<Dataset> || TorchBatchDataset<Dataset>;

}  // namespace detail

/// Makes a loader over any object with `size()` and `get(i)`, where get() returns a tensor, a number, or an Example,
/// pair or tuple of them. A data set that reads many samples at once has `get_batch(std::span<const std::int64_t>)`,
/// which returns the batch. Data sets of torch::data, also mapped ones, work as they are.
///
/// The data set may also be a stream: a range, or any object with `next()`, which returns a std::optional sample, empty
/// at the end. `reset()` or `set_epoch(std::int64_t)` makes the stream begin again for each pass. `size()` is optional.
template <typename Dataset>
auto data_loader(Dataset dataset, const LoaderOptions& options = {}) {
  static_assert(!detail::is_torch_loader<Dataset>,
                "this is already a loader: pass the data set of the torch::data loader to data_loader");
  static_assert(!detail::TorchStreamDataset<Dataset>,
                "the samples of torch::data's stream and stateful data sets have no position in an order: "
                "give data_loader an object whose next() returns a std::optional sample");
  if constexpr (detail::is_numbered<Dataset> || !detail::StreamDataset<Dataset>) {
    return detail::make_loader(std::move(dataset), detail::default_reading<Dataset>(), options);
  } else {
    return detail::make_stream_loader(std::move(dataset), detail::DefaultJoin{}, options);
  }
}

/// As above, with a function `join` that makes a batch from a std::vector of samples.
template <typename Dataset, typename Join>
auto data_loader(Dataset dataset, const LoaderOptions& options, Join join) {
  if constexpr (detail::SampleDataset<Dataset>) {
    return detail::make_loader(std::move(dataset), detail::ReadSamples<Join>{std::move(join)}, options);
  } else {
    static_assert(detail::StreamDataset<Dataset>,
                  "a data set whose samples are joined by a function has size() and get(i), or next()");
    return detail::make_stream_loader(std::move(dataset), std::move(join), options);
  }
}

/// Makes a loader with batches of varying size: `batches` lists the samples of each batch, or is a function that
/// returns such a list for an epoch, the same on all ranks. Ranks get whole batches in turn; the last ones repeat the
/// first. Leave batch_size unset. With `shuffle` the order of the batches changes each epoch.
template <typename Dataset, detail::BatchChoice Batches>
auto data_loader(Dataset dataset, Batches batches, const LoaderOptions& options = {}) {
  return detail::make_loader(std::move(dataset), detail::default_reading<Dataset>(), options,
                             detail::choose_by(std::move(batches)));
}

/// Returns the loader without the first `batches` batches of an epoch on each rank. Batches that a resumed run has
/// already had count as skipped. Everything else is unchanged, also for the Accelerator; repeated skipping adds up.
template <std::derived_from<LoaderBase> Loader>
Loader skip_first_batches(Loader loader, std::int64_t batches) {
  loader.skip_first(batches);
  return loader;
}

}  // namespace hortator
