#pragma once

#include <cstdint>
#include <functional>
#include <hortator/export.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hortator {

/// The input of an epoch's order. The order must not depend on anything else: every rank computes it independently, and
/// a resumed run computes it again.
struct EpochKey {
  std::int64_t dataset_size = 0;
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
};

/// The sample at each position of one epoch. Must be safe for several threads.
class HORTATOR_API Order {
 public:
  virtual ~Order();
  virtual std::int64_t sample_at(std::int64_t position) const = 0;
};

/// Makes the orders of a loader's epochs, for LoaderOptions::sampler. Use one of those below, or derive your own.
class HORTATOR_API Sampler {
 public:
  virtual ~Sampler();
  /// The name in the loader's saved state. A position within an epoch can be restored only with a sampler of the same
  /// name.
  virtual std::string name() const = 0;
  virtual std::int64_t epoch_size(std::int64_t dataset_size) const = 0;  ///< number of positions in every epoch
  virtual std::unique_ptr<const Order> order(const EpochKey& epoch) const = 0;
};

/// Options of weighted_sampler.
struct WeightedOptions {
  std::optional<std::int64_t> epoch_size = {};  ///< draws in an epoch; default: the number of samples
  /// false: each sample at most once in an epoch, which costs one sort per epoch.
  bool replacement = true;
};
/// Draws a sample for each position, with a probability proportional to its weight. Uses 16 bytes a sample.
HORTATOR_API std::shared_ptr<const Sampler> weighted_sampler(std::vector<double> weights,
                                                             const WeightedOptions& options = {});

/// Options of length_grouped_sampler.
struct LengthGroupOptions {
  std::int64_t batch_size = 1;  ///< samples that should have similar lengths; best the batch size of all ranks together
  /// The number of batches in a group: in each group, shuffled samples are sorted by length, the longest first. 0: 50,
  /// or fewer so that there are at least four groups.
  std::int64_t mega_batches = 0;
};
/// Shuffles so that neighbours have similar lengths and batches need little padding. The longest sample comes first, so
/// that running out of memory shows at once. Uses 8 bytes a sample, and twice that during an epoch.
HORTATOR_API std::shared_ptr<const Sampler> length_grouped_sampler(std::vector<std::int64_t> lengths,
                                                                   const LengthGroupOptions& options);

/// Options of block_sampler.
struct BlockOptions {
  std::int64_t block = 1024;  ///< consecutive samples that are best read together, such as a chunk of a file
  std::int64_t window = 16;   ///< blocks whose samples are mixed with each other
};
/// Shuffles so that files stored in chunks are read a chunk at a time: puts blocks in random order, then shuffles
/// samples within each window of blocks. Uses no memory for a data set of any length.
HORTATOR_API std::shared_ptr<const Sampler> block_sampler(const BlockOptions& options = {});

/// Options of custom_sampler.
struct CustomOptions {
  std::optional<std::int64_t> epoch_size = {};  ///< number of positions; default: the number of samples
};
/// A user-defined order: `sample_at` returns the sample at each position. It is called by several threads at once if
/// the loader has several workers.
HORTATOR_API std::shared_ptr<const Sampler> custom_sampler(
    std::string name, std::function<std::int64_t(const EpochKey& epoch, std::int64_t position)> sample_at,
    const CustomOptions& options = {});
/// A user-defined order: `samples` returns the list of samples of an epoch.
HORTATOR_API std::shared_ptr<const Sampler> custom_sampler(
    std::string name, std::function<std::vector<std::int64_t>(const EpochKey& epoch)> samples,
    const CustomOptions& options = {});

}  // namespace hortator
