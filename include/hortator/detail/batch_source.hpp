#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

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

/// Where batches go, and how.
struct Placement {
  c10::Device device = c10::Device(c10::kCPU);
  bool non_blocking = false;
};

using ChangeTensor = std::function<at::Tensor(const at::Tensor& tensor)>;

/// What a loader needs to know of its batches, whatever their type.
class HORTATOR_API BatchSource {
 public:
  virtual ~BatchSource();
  /// Each of the batch's tensors, however deep it lies, becomes what `change` makes of it.
  virtual void change(void* batch, const ChangeTensor& change) const = 0;

  /// What one rank reads for another goes there as bytes, if the batches' type can.
  virtual bool can_travel() const = 0;
  virtual std::string encode(const void* batch) const = 0;
  virtual std::shared_ptr<void> decode(std::string_view bytes) const = 0;
};

/// Batches of a data set whose samples have numbers.
class HORTATOR_API SampleSource : public BatchSource {
 public:
  virtual std::int64_t size() const = 0;
  /// May several threads read at once? If not: one at a time, not always the same.
  virtual bool is_shareable() const = 0;
  virtual std::shared_ptr<void> read(std::span<const std::int64_t> samples) = 0;
};

/// Batches of a stream, whose samples come one after the other. Used by one thread at a time, not always the same.
class HORTATOR_API StreamSource : public BatchSource {
 public:
  virtual std::optional<std::int64_t> size() const = 0;  ///< if it says

  /// Whether the stream can be cut into parts, which it does by itself.
  virtual bool has_shards() const = 0;
  virtual void shard(int world, int rank) = 0;  ///< from the next begin() on it gives that part alone

  virtual void begin(std::int64_t epoch) = 0;  ///< the next sample is number 0
  /// Goes on by one sample, and keeps it if asked to. False: there is none.
  virtual bool advance(bool keep) = 0;
  /// Samples first, ... last - 1 are kept no longer.
  virtual void forget(std::int64_t first, std::int64_t last) = 0;
  /// A batch of kept samples. They may be asked for again.
  virtual std::shared_ptr<void> join(std::span<const std::int64_t> samples) = 0;

  /// What the stream itself says of where it is, if it does.
  virtual std::optional<StateDict> state() const = 0;
  /// Goes on where `state` was taken: at sample number `position`.
  virtual void resume(const StateDict& state, std::int64_t position) = 0;
};

/// The samples of one batch after the other.
using BatchList = std::vector<std::vector<std::int64_t>>;
using ChooseBatches = std::function<BatchList(std::uint64_t seed, std::int64_t epoch)>;

/// Where a loader's batches come from.
struct Contents {
  std::unique_ptr<SampleSource> samples = {};
  ChooseBatches choose = {};  ///< which samples go together; by default batch_size of them, as they come
  std::unique_ptr<StreamSource> stream = {};  ///< in place of both
};

/// Inside a catch block: throws an Error that names the samples at hand, with the caught exception nested in it.
[[noreturn]] HORTATOR_API void throw_unreadable(std::span<const std::int64_t> samples);
[[noreturn]] HORTATOR_API void throw_not_joined(std::span<const std::int64_t> samples);
[[noreturn]] HORTATOR_API void throw_unknown_size();
[[noreturn]] HORTATOR_API void throw_cannot_begin_again();
[[noreturn]] HORTATOR_API void throw_cannot_travel();

HORTATOR_API at::Tensor stack(std::span<const at::Tensor> tensors);
HORTATOR_API at::Tensor pinned(const at::Tensor& tensor);  ///< in page-locked memory, if it is the host's
HORTATOR_API at::Tensor placed(const at::Tensor& tensor, const Placement& placement);

/// Calls `draw` with LibTorch's default generator of the CPU seeded; afterwards that is as it was.
HORTATOR_API void with_seed(std::uint64_t seed, const std::function<void()>& draw);

}  // namespace hortator::data
