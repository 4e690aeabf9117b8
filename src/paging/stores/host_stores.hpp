#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "machine/device/copy_stream.hpp"
#include "paging/stores/store.hpp"

namespace hortator::paging {

/// Pages in this process's memory. Modules on the CPU use them in place: nothing is copied. Modules on devices (and
/// tests) use frames.
class HostStore final : public Store {
 public:
  enum class Use { in_place, in_frames };

  HostStore(const std::vector<Page>& pages, Use use);

  comm::Work fetch(const Page& page, std::span<std::byte> frame) override;
  comm::Work publish(const Page& page, std::span<const std::byte> frame) override;
  std::byte* home(const Page& page) override;
  bool follows_storages() const override { return false; }

 private:
  std::byte* memory(const Page& page);

  Use use_;
  std::vector<at::Tensor> pages_;
};

/// Pages in page-locked memory of the host, for frames on a device. A Work makes the current stream wait, never the
/// host.
class PinnedStore final : public Store {
 public:
  PinnedStore(const std::vector<Page>& pages, c10::Device device);
  ~PinnedStore() override;
  PinnedStore(const PinnedStore&) = delete;
  PinnedStore& operator=(const PinnedStore&) = delete;

  comm::Work fetch(const Page& page, std::span<std::byte> frame) override;
  comm::Work publish(const Page& page, std::span<const std::byte> frame) override;
  bool follows_storages() const override { return false; }

 private:
  comm::Work copy(const at::Tensor& from, const at::Tensor& to) const;
  const at::Tensor& kept(const Page& page) const { return pages_[static_cast<std::size_t>(page.number)]; }

  machine::CopyStream copies_;
  std::vector<at::Tensor> pages_;
};

}  // namespace hortator::paging
