#pragma once

#include <ATen/ops/tensor.h>

#include <algorithm>
#include <atomic>
#include <hortator/data.hpp>
#include <memory>
#include <stdexcept>
#include <vector>

/// Data sets and helpers for the tests of loaders.
namespace hortator::data_test {

using Batch = std::vector<std::int64_t>;
using Batches = std::vector<Batch>;

/// Sample i is i.
struct Numbers {
  std::int64_t count = 0;
  std::int64_t size() const { return count; }
  std::int64_t get(std::int64_t i) const { return i; }
};

/// Counts the samples read, and throws at one sample.
struct Watched {
  std::int64_t count = 0;
  std::int64_t bad = -1;
  std::shared_ptr<std::atomic<int>> reads = std::make_shared<std::atomic<int>>(0);

  std::int64_t size() const { return count; }
  std::int64_t get(std::int64_t i) const {
    if (i == bad) throw std::out_of_range("the disk is gone");
    ++*reads;
    return i;
  }
};

inline Batch values(const at::Tensor& tensor) {
  const auto flat = tensor.contiguous();
  const auto* data = flat.const_data_ptr<std::int64_t>();
  return {data, data + flat.numel()};
}

/// The batches of the next pass over `loader`, which ends after `at_most` batches.
inline Batches read(const DataLoader<at::Tensor>& loader, std::size_t at_most = 1'000'000) {
  Batches batches;
  if (at_most == 0) return batches;
  for (auto& batch : loader) {
    batches.push_back(values(batch));
    if (batches.size() == at_most) break;
  }
  return batches;
}

inline Batch sorted(const Batches& batches) {
  Batch all;
  for (const auto& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
  std::sort(all.begin(), all.end());
  return all;
}

inline Batch counted(std::int64_t n) {
  Batch all;
  for (std::int64_t i = 0; i < n; ++i) all.push_back(i);
  return all;
}

/// A loader bound to rank `rank` of `world`.
inline DataLoader<at::Tensor> bound(std::int64_t samples, const LoaderOptions& options, LoaderBinding binding) {
  auto loader = data_loader(Numbers{samples}, options);
  loader.bind(binding);
  return loader;
}

}  // namespace hortator::data_test
