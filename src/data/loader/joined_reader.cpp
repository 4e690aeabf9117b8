#include "data/loader/joined_reader.hpp"

#include <ATen/ops/cat.h>

#include <hortator/error.hpp>
#include <utility>

#include "core/text/text.hpp"

namespace hortator::data {
namespace {

void require_joinable(const at::Tensor& first, const at::Tensor& other) {
  const bool are_defined = first.defined() && other.defined();
  if (!first.defined() && !other.defined()) return;
  if (are_defined && first.dim() > 0 && first.dim() == other.dim() && first.sizes().slice(1) == other.sizes().slice(1))
    return;
  const auto shape = [](const at::Tensor& one) {
    return one.defined() ? text::concat("[", text::join(one.sizes(), ", "), "]") : std::string("no tensor");
  };
  throw UsageError({.what = text::concat("Batches of one step have ", shape(first), " and ", shape(other)),
                    .why = "with reproducible = true a pipeline gets the batches of its virtual shards as one, joined "
                           "along dimension 0",
                    .hint = "pad all samples to one length"});
}

}  // namespace

std::vector<Delivery> JoinedReader::read(std::int64_t step, std::span<const int> ranks) {
  std::vector<Delivery> whole(ranks.size());
  std::vector<std::vector<std::shared_ptr<void>>> batches(ranks.size());
  for (int part = 0; part < count_; ++part) {
    if (before_part_) before_part_(part);
    auto deliveries = parts_->read(step * count_ + part, ranks);
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const auto rows_before = whole[i].new_rows;
      whole[i] = std::move(deliveries[i]);
      whole[i].new_rows += rows_before;
      if (whole[i].batch) batches[i].push_back(std::move(whole[i].batch));
    }
  }
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (batches[i].empty()) continue;
    join(batches[i]);
    whole[i].batch = std::move(batches[i].front());
  }
  return whole;
}

// Into the first of them.
void JoinedReader::join(const std::vector<std::shared_ptr<void>>& batches) const {
  std::vector<std::vector<at::Tensor>> others(batches.size() - 1);
  for (std::size_t i = 0; i < others.size(); ++i) {
    source_.change(batches[i + 1].get(), [&](const at::Tensor& tensor) { return others[i].emplace_back(tensor); });
  }
  std::size_t next = 0;
  source_.change(batches.front().get(), [&](const at::Tensor& first) {
    std::vector<at::Tensor> all = {first};
    for (const auto& tensors : others) {
      require_joinable(first, tensors.at(next));
      all.push_back(tensors[next]);
    }
    ++next;
    return first.defined() && all.size() > 1 ? at::cat(all) : first;
  });
}

}  // namespace hortator::data
