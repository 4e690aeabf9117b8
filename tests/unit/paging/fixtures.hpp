#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "paging/pager.hpp"
#include "paging/stores/host_stores.hpp"
#include "paging/stores/paged_storages.hpp"

/// Helpers of the paging tests.
namespace hortator::testing {

/// The same bytes, type and shape: NaN equals itself.
inline bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.defined() != b.defined()) return false;
  if (!a.defined()) return true;
  const auto left = a.contiguous();
  const auto right = b.contiguous();
  return left.scalar_type() == right.scalar_type() && left.sizes() == right.sizes() &&
         (left.numel() == 0 || std::memcmp(left.const_data_ptr(), right.const_data_ptr(), left.nbytes()) == 0);
}

/// An empty folder for this test.
inline std::filesystem::path folder(const std::string& name) {
  auto path = std::filesystem::absolute(name);
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  return path;
}

inline std::vector<paging::Page> pages_of(const paging::PagedStorages& storages, std::size_t page_bytes) {
  std::vector<int> order(static_cast<std::size_t>(storages.size()));
  std::iota(order.begin(), order.end(), 0);
  return paging::plan_pages(storages.items(), order, {.page_bytes = page_bytes});
}

constexpr std::size_t evict_always = 1;  // as a budget in which no page fits

/// A pager over the host's memory that copies pages.
inline std::unique_ptr<paging::Pager> page_in_host(std::vector<paging::NamedTensor> tensors, std::size_t page_bytes,
                                                   const paging::Pager::Options& options) {
  paging::PagedStorages storages(std::move(tensors));
  auto pages = pages_of(storages, page_bytes);
  auto store = std::make_unique<paging::HostStore>(pages, paging::HostStore::Use::in_frames);
  return std::make_unique<paging::Pager>(std::move(storages), std::move(pages), std::move(store), options);
}

}  // namespace hortator::testing
