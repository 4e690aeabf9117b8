#include <algorithm>
#include <hortator/error.hpp>

#include "core/hash.hpp"
#include "core/text/text.hpp"
#include "data/orders/order.hpp"
#include "data/orders/permutation.hpp"

namespace hortator::data {
namespace {

constexpr std::uint64_t purpose_of_lengths = 5;

class LengthGroupedSampler final : public Sampler {
 public:
  LengthGroupedSampler(std::vector<std::int64_t> lengths, const LengthGroupOptions& options)
      : lengths_(std::move(lengths)), group_(options.batch_size * mega_batches(options)) {}

  std::string name() const override {
    const std::string_view bytes(reinterpret_cast<const char*>(lengths_.data()),
                                 lengths_.size() * sizeof(std::int64_t));
    return text::concat("length-grouped ", group_, ' ', std::hex, core::hash(bytes));
  }
  std::int64_t epoch_size(std::int64_t dataset_size) const override {
    require_one_each("lengths", lengths_.size(), dataset_size);
    return dataset_size;
  }
  std::unique_ptr<const Order> order(const EpochKey& epoch) const override {
    auto samples = shuffled(epoch);
    for (auto begin = samples.begin(); begin != samples.end();) {
      const auto end = begin + std::min<std::int64_t>(group_, samples.end() - begin);
      std::stable_sort(begin, end, [this](auto a, auto b) { return length_of(a) > length_of(b); });
      begin = end;
    }
    bring_longest_to_front(samples);
    return listed_order(std::move(samples));
  }

 private:
  std::int64_t length_of(std::int64_t sample) const { return lengths_[static_cast<std::size_t>(sample)]; }

  std::int64_t mega_batches(const LengthGroupOptions& options) const {
    if (options.mega_batches > 0) return options.mega_batches;
    const auto samples = static_cast<std::int64_t>(lengths_.size());
    return std::clamp<std::int64_t>(samples / (4 * options.batch_size), 1, 50);
  }

  static std::vector<std::int64_t> shuffled(const EpochKey& epoch) {
    const Permutation permutation(epoch.dataset_size, draws_of(epoch, purpose_of_lengths));
    std::vector<std::int64_t> samples(static_cast<std::size_t>(epoch.dataset_size));
    for (std::int64_t i = 0; i < epoch.dataset_size; ++i) samples[static_cast<std::size_t>(i)] = permutation(i);
    return samples;
  }

  // The first of each group is its longest.
  void bring_longest_to_front(std::vector<std::int64_t>& samples) const {
    std::size_t longest = 0;
    for (std::size_t first = 0; first < samples.size(); first += static_cast<std::size_t>(group_)) {
      if (length_of(samples[first]) > length_of(samples[longest])) longest = first;
    }
    if (longest > 0) std::swap(samples[0], samples[longest]);
  }

  std::vector<std::int64_t> lengths_;
  std::int64_t group_;  ///< samples that are sorted together
};

}  // namespace
}  // namespace hortator::data

namespace hortator {

std::shared_ptr<const Sampler> length_grouped_sampler(std::vector<std::int64_t> lengths,
                                                      const LengthGroupOptions& options) {
  if (options.batch_size < 1 || options.mega_batches < 0) {
    throw UsageError({.what = text::concat("length_grouped_sampler with a batch_size of ", options.batch_size, " and ",
                                           options.mega_batches, " mega_batches"),
                      .hint = "use a batch_size of 1 or more, and 0 or more mega_batches"});
  }
  return std::make_shared<data::LengthGroupedSampler>(std::move(lengths), options);
}

}  // namespace hortator
