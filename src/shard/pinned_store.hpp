#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <vector>

#include "shard/store.hpp"

namespace hortator::shard {

/// Pages in page-locked memory of the host, for frames on a device. Copies go on a stream of their own, each after what
/// the current stream was given before, so that they overlap with what it is given next. A Work makes the current
/// stream wait; the host never does.
class PinnedStore final : public Store {
 public:
  PinnedStore(const std::vector<Page>& pages, c10::Device device);

  comm::Work fetch(const Page& page, std::span<std::byte> frame) override;
  comm::Work publish(const Page& page, std::span<const std::byte> frame) override;
  bool follows_storages() const override { return false; }

 private:
  comm::Work copy(const at::Tensor& from, const at::Tensor& to) const;
  const at::Tensor& kept(const Page& page) const { return pages_[static_cast<std::size_t>(page.number)]; }
  at::Tensor on_device(std::byte* frame, const Page& page) const;

  c10::impl::VirtualGuardImpl device_;
  c10::Stream stream_;
  std::vector<at::Tensor> pages_;
};

}  // namespace hortator::shard
