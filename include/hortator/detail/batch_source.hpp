#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <hortator/export.hpp>
#include <hortator/training/state_dict.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hortator::data {

/// The device that batches are copied to, and how.
struct Placement {
  c10::Device device = c10::Device(c10::kCPU);
  bool non_blocking = false;
};

using ChangeTensor = std::function<at::Tensor(const at::Tensor& tensor)>;

/// Operations on batches of any type, as a loader needs them.
class HORTATOR_API BatchSource {
 public:
  virtual ~BatchSource();
  /// Replaces each tensor in the batch, at any depth, by the result of `change`.
  virtual void change(void* batch, const ChangeTensor& change) const = 0;

  /// Whether batches can be sent between ranks as bytes; then encode() and decode() work.
  virtual bool can_travel() const = 0;
  virtual std::string encode(const void* batch) const = 0;
  virtual std::shared_ptr<void> decode(std::string_view bytes) const = 0;
};

/// Batches of a data set with numbered samples.
class HORTATOR_API SampleSource : public BatchSource {
 public:
  virtual std::int64_t size() const = 0;
  /// Whether several threads may call read() at once. Otherwise one at a time, on any thread.
  virtual bool is_shareable() const = 0;
  virtual std::shared_ptr<void> read(std::span<const std::int64_t> samples) = 0;
};

/// Batches of a stream, whose samples come one after the other. Used by one thread at a time, on any thread.
class HORTATOR_API StreamSource : public BatchSource {
 public:
  virtual std::optional<std::int64_t> size() const = 0;  ///< if the stream reports it

  /// Whether the stream can give each rank its own part.
  virtual bool has_shards() const = 0;
  virtual void shard(int world,
                     int rank) = 0;  ///< from the next begin() on, the stream gives only the part of this rank

  virtual void begin(std::int64_t epoch) = 0;  ///< the next sample is number 0
  /// Reads one sample and keeps it if `keep` is set. Returns false at the end.
  virtual bool advance(bool keep) = 0;
  /// Drops the kept samples first, ... last - 1.
  virtual void forget(std::int64_t first, std::int64_t last) = 0;
  /// Makes a batch of kept samples, which stay kept.
  virtual std::shared_ptr<void> join(std::span<const std::int64_t> samples) = 0;

  /// The stream's own state, if it can save one.
  virtual std::optional<StateDict> state() const = 0;
  /// Continues where `state` was saved, at sample number `position`.
  virtual void resume(const StateDict& state, std::int64_t position) = 0;
};

/// The numbers of the samples of each batch.
using BatchList = std::vector<std::vector<std::int64_t>>;
using ChooseBatches = std::function<BatchList(std::uint64_t seed, std::int64_t epoch)>;

/// Where a loader's batches come from.
struct Contents {
  std::unique_ptr<SampleSource> samples = {};
  ChooseBatches choose = {};                  ///< chooses the samples of each batch; empty: batch_size consecutive ones
  std::unique_ptr<StreamSource> stream = {};  ///< instead of both
};

/// Call it inside a catch block: throws an Error that names the samples, with the caught exception nested in it.
[[noreturn]] HORTATOR_API void throw_unreadable(std::span<const std::int64_t> samples);
[[noreturn]] HORTATOR_API void throw_not_joined(std::span<const std::int64_t> samples);
[[noreturn]] HORTATOR_API void throw_unknown_size();
[[noreturn]] HORTATOR_API void throw_cannot_begin_again();
[[noreturn]] HORTATOR_API void throw_cannot_travel();

HORTATOR_API at::Tensor stack(std::span<const at::Tensor> tensors);
HORTATOR_API at::Tensor pinned(
    const at::Tensor& tensor);  ///< a copy in page-locked memory if the tensor is on the CPU, otherwise the tensor
HORTATOR_API at::Tensor placed(const at::Tensor& tensor, const Placement& placement);

/// While this thread reads a batch for a loader: random numbers that it draws on the CPU from now on belong to the
/// sample with this index in the batch, or to the batch as a whole. Otherwise they do nothing.
HORTATOR_API void draw_for_sample(std::size_t index);
HORTATOR_API void draw_for_batch();

/// Calls `draw` with LibTorch's default CPU generator seeded by `seed`, then restores the generator's state.
HORTATOR_API void with_seed(std::uint64_t seed, const std::function<void()>& draw);

}  // namespace hortator::data
