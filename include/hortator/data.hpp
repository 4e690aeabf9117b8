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

/// Batches of a data set, for `for (auto& batch : loader)`. By itself it deals to one rank and leaves batches on the
/// CPU; Accelerator::prepare() makes it deal to all of them and move batches to the device.
///
/// Each loop is one pass over the data set. After a break the next loop repeats the epoch from its first batch; a loop
/// over a loader that is in a loop already takes the pass over, and the outer one throws. An exception of the data set
/// comes out of the loop, at its batch, with the sample named and itself nested. Samples are read without gradients,
/// also on other threads than the loop's unless prefetch is 0.
///
/// A stream's samples are dealt as they come, to as many batches on every rank: the last ones repeat its first samples.
/// Every rank reads the whole stream, or, with DataOptions::dispatch_batches, one rank of each node. Resumed, a stream
/// is read over up to the position, unless it has save(StateWriter&) const and load(const StateReader&). A stream of
/// many files has `shard(int world, int rank)` and gives each rank some of them: nothing is read twice, what one rank
/// has too few of it repeats, and the epoch is resumed on as many ranks as it was stopped on.
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

/// How a data set with numbered samples is read when the user says nothing about it.
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

/// The batches themselves, or a function from an epoch to them.
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

/// A loader over anything with `size()` and `get(i)`: a tensor, a number, an Example, pair or tuple of them. A data set
/// that can read many samples at once has `get_batch(std::span<const std::int64_t>)`, which makes the batches itself;
/// torch::data's data sets, mapped ones too, are read as they are.
///
/// Or over a stream: a range, or anything with `next()`, which returns a std::optional sample, empty at the end. With
/// `reset()`, or `set_epoch(std::int64_t)`, it begins again for each pass. It may have `size()`.
template <typename Dataset>
auto data_loader(Dataset dataset, const LoaderOptions& options = {}) {
  static_assert(!detail::is_torch_loader<Dataset>,
                "this is a loader already: of a torch::data loader, data_loader takes the data set");
  static_assert(!detail::TorchStreamDataset<Dataset>,
                "torch::data's stream and stateful data sets hand out batches whose samples have no place in an order: "
                "give data_loader an object whose next() returns a std::optional sample");
  if constexpr (detail::is_numbered<Dataset> || !detail::StreamDataset<Dataset>) {
    return detail::make_loader(std::move(dataset), detail::default_reading<Dataset>(), options);
  } else {
    return detail::make_stream_loader(std::move(dataset), detail::DefaultJoin{}, options);
  }
}

/// The same with a function of the user's that makes a batch of a std::vector of samples.
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

/// Batches of sizes of their own: `batches` lists the samples of each, or is a function that does so for an epoch,
/// alike on all ranks. Ranks get whole batches in turn; the last ones repeat the first. The options have no batch_size;
/// with `shuffle` the batches come in another order each epoch.
template <typename Dataset, detail::BatchChoice Batches>
auto data_loader(Dataset dataset, Batches batches, const LoaderOptions& options = {}) {
  return detail::make_loader(std::move(dataset), detail::default_reading<Dataset>(), options,
                             detail::choose_by(std::move(batches)));
}

/// The same loader without the first batches of an epoch, on each rank: also without those that an earlier run has had,
/// but not of both. Everything else is kept, what the Accelerator knows of it too; skipping twice adds up.
template <std::derived_from<LoaderBase> Loader>
Loader skip_first_batches(Loader loader, std::int64_t batches) {
  loader.skip_first(batches);
  return loader;
}

}  // namespace hortator
