#include <ATen/ops/cat.h>

#include <algorithm>
#include <hortator/datasets/subset.hpp>
#include <hortator/error.hpp>
#include <hortator/parallel/split_between_processes.hpp>

#include "core/range.hpp"
#include "core/text/text.hpp"
#include "data/orders/order.hpp"

namespace hortator::data {

std::shared_ptr<const Order> order_of_subset(std::vector<std::int64_t> samples, std::int64_t dataset_size) {
  const auto wrong =
      std::ranges::find_if(samples, [&](std::int64_t sample) { return sample < 0 || sample >= dataset_size; });
  if (wrong != samples.end()) {
    throw UsageError({.what = text::concat("A subset has sample ", *wrong, ", but the data set has ",
                                           text::count(dataset_size, "sample"))});
  }
  return listed_order(std::move(samples));
}

std::vector<std::int64_t> samples_at(const Order& order, std::span<const std::int64_t> positions) {
  std::vector<std::int64_t> samples;
  samples.reserve(positions.size());
  for (const auto position : positions) samples.push_back(order.sample_at(position));
  return samples;
}

}  // namespace hortator::data

namespace hortator::detail {
namespace {

/// Consecutive samples, followed by repetitions of the last of all samples.
class ShareOrder final : public Order {
 public:
  ShareOrder(const SplitRange& mine, std::int64_t last) : mine_(mine), last_(last) {}
  std::int64_t sample_at(std::int64_t position) const override {
    return position < mine_.count ? mine_.begin + position : last_;
  }

 private:
  SplitRange mine_;
  std::int64_t last_;
};

}  // namespace

SplitRange share_of(std::int64_t values, int rank, int world, const SplitOptions& options) {
  if (options.apply_padding && values == 0 && world > 1) {
    throw UsageError({.what = "split_between_processes() got no values, with apply_padding",
                      .why = "there is no last value to repeat"});
  }
  const auto range = core::balanced(values, world, rank);
  const auto max_size = core::balanced(values, world, 0).size();
  return {.begin = range.begin, .count = range.size(), .padding = options.apply_padding ? max_size - range.size() : 0};
}

std::int64_t values_in(const at::Tensor& tensor) {
  if (tensor.dim() > 0) return tensor.size(0);
  throw UsageError({.what = "split_between_processes() got a single number",
                    .why = "tensors are split along dimension 0",
                    .hint = "view it as a vector with one element"});
}

at::Tensor share(const at::Tensor& tensor, const SplitRange& mine) {
  auto own = tensor.narrow(0, mine.begin, mine.count);
  if (mine.padding == 0) return own;
  auto sizes = tensor.sizes().vec();
  sizes[0] = mine.padding;
  return at::cat({own, tensor.narrow(0, tensor.size(0) - 1, 1).expand(sizes)});
}

std::shared_ptr<const Order> order_of_share(const SplitRange& mine, std::int64_t values) {
  return std::make_shared<ShareOrder>(mine, values - 1);
}

void throw_uneven(const std::string& first, std::int64_t first_values, const std::string& other,
                  std::int64_t other_values) {
  throw UsageError({.what = text::concat("split_between_processes() got lists of different lengths: ", first, " has ",
                                         first_values, ", ", other, " has ", other_values),
                    .why = "their values belong together"});
}

}  // namespace hortator::detail
