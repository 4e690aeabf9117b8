#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <memory>
#include <vector>

#include "machine/device/copy_stream.hpp"
#include "paging/stores/store.hpp"

namespace hortator::paging {

/// Connects a store that works with memory of the host to frames on a device: pages go through a few buffers of
/// page-locked memory. While the inner store reads a page, the page before it is copied beside the device's work. A
/// Work waits for the inner store, and makes the current stream wait for the copy.
class StagedStore final : public Store {
 public:
  /// Allocates host memory for a buffer: machine::page_locked, except in tests.
  using Allocate = std::function<std::shared_ptr<void>(std::size_t bytes)>;

  StagedStore(std::unique_ptr<Store> inner, c10::Device device, Allocate allocate);
  ~StagedStore() override;
  StagedStore(const StagedStore&) = delete;
  StagedStore& operator=(const StagedStore&) = delete;

  comm::Work fetch(const Page& page, std::span<std::byte> frame) override;
  void announce(const Page& page) override { inner_->announce(page); }
  comm::Work publish(const Page& page, std::span<const std::byte> frame) override;
  bool needs_ranks() const override { return inner_->needs_ranks(); }
  bool follows_storages() const override { return inner_->follows_storages(); }

  std::size_t buffers() const { return made_; }  ///< number of buffers made so far

 private:
  struct Buffer {
    std::shared_ptr<void> memory;
    std::size_t bytes = 0;
    machine::CopyStream::Done copied = {};  ///< the device uses the buffer until then
  };
  std::shared_ptr<Buffer> take(std::size_t bytes);

  std::unique_ptr<Store> inner_;
  machine::CopyStream copies_;
  Allocate allocate_;
  std::vector<std::unique_ptr<Buffer>> free_;  ///< in the order in which they were given back
  std::size_t made_ = 0;
};

}  // namespace hortator::paging
