#pragma once

#include <cstdint>
#include <functional>
#include <hortator/export.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hortator {

/// What the order of an epoch is a function of. Nothing else may count: all ranks make the same order by themselves,
/// and a resumed run makes it again.
struct EpochKey {
  std::int64_t dataset_size = 0;
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
};

/// Which sample of the data set stands at which position of one epoch. Several threads may ask at once.
class HORTATOR_API Order {
 public:
  virtual ~Order();
  virtual std::int64_t sample_at(std::int64_t position) const = 0;
};

/// Makes the orders of a loader's epochs: LoaderOptions::sampler. Those below are ready; users derive their own.
class HORTATOR_API Sampler {
 public:
  virtual ~Sampler();
  /// What a loader's state calls it. A position within an epoch is loaded only by a loader whose sampler has this name.
  virtual std::string name() const = 0;
  virtual std::int64_t epoch_size(std::int64_t dataset_size) const = 0;  ///< positions of every epoch
  virtual std::unique_ptr<const Order> order(const EpochKey& epoch) const = 0;
};

/// Of weighted_sampler.
struct WeightedOptions {
  std::optional<std::int64_t> epoch_size = {};  ///< draws in an epoch; by default as many as there are samples
  /// false: each sample at most once in an epoch. Costs a sort an epoch in place of nothing.
  bool replacement = true;
};
/// Each position draws a sample with a probability in proportion to its weight. Holds 16 bytes a sample.
HORTATOR_API std::shared_ptr<const Sampler> weighted_sampler(std::vector<double> weights,
                                                             const WeightedOptions& options = {});

/// Of length_grouped_sampler.
struct LengthGroupOptions {
  std::int64_t batch_size = 1;  ///< samples that should be of like length; best of all ranks together
  /// Shuffled samples are sorted by length, the longest first, in groups of so many batches; 0: 50, or fewer, so that
  /// there are at least four groups.
  std::int64_t mega_batches = 0;
};
/// Shuffled, with neighbours of like length, so that batches need little padding. The longest sample comes first: what
/// does not fit into memory fails at once. Holds 8 bytes a sample, twice while an epoch runs.
HORTATOR_API std::shared_ptr<const Sampler> length_grouped_sampler(std::vector<std::int64_t> lengths,
                                                                   const LengthGroupOptions& options);

/// Of block_sampler.
struct BlockOptions {
  std::int64_t block = 1024;  ///< consecutive samples that are best read together: a chunk of a file
  std::int64_t window = 16;   ///< blocks whose samples are mixed with each other
};
/// Shuffled so that files stored in chunks are read a chunk at a time: blocks are put in a random order, then samples
/// change places within each window of blocks. Takes no memory, however long the data set is.
HORTATOR_API std::shared_ptr<const Sampler> block_sampler(const BlockOptions& options = {});

/// Of custom_sampler.
struct CustomOptions {
  std::optional<std::int64_t> epoch_size = {};  ///< by default as many positions as there are samples
};
/// An order of the user's: the sample at each position, from several threads at once if the loader has several workers.
HORTATOR_API std::shared_ptr<const Sampler> custom_sampler(
    std::string name, std::function<std::int64_t(const EpochKey& epoch, std::int64_t position)> sample_at,
    const CustomOptions& options = {});
/// The same as a list of samples for each epoch.
HORTATOR_API std::shared_ptr<const Sampler> custom_sampler(
    std::string name, std::function<std::vector<std::int64_t>(const EpochKey& epoch)> samples,
    const CustomOptions& options = {});

}  // namespace hortator
