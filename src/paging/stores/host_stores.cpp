#include "paging/stores/host_stores.hpp"

#include <ATen/ops/empty.h>

#include <cstring>
#include <exception>

#include "machine/device/copy_bytes.hpp"
#include "machine/device/memory.hpp"

namespace hortator::paging {

HostStore::HostStore(const std::vector<Page>& pages, Use use) : use_(use) {
  for (const auto& page : pages)
    pages_.push_back(at::empty({static_cast<std::int64_t>(page.bytes)}, at::TensorOptions(at::kByte)));
}

std::byte* HostStore::memory(const Page& page) {
  return static_cast<std::byte*>(pages_[static_cast<std::size_t>(page.number)].mutable_data_ptr());
}

std::byte* HostStore::home(const Page& page) { return use_ == Use::in_place ? memory(page) : nullptr; }

comm::Work HostStore::fetch(const Page& page, std::span<std::byte> frame) {
  if (frame.data() != memory(page)) std::memcpy(frame.data(), memory(page), frame.size());
  return {};
}

comm::Work HostStore::publish(const Page& page, std::span<const std::byte> frame) {
  if (frame.data() != memory(page)) std::memcpy(memory(page), frame.data(), frame.size());
  return {};
}

PinnedStore::PinnedStore(const std::vector<Page>& pages, c10::Device device) : copies_(device) {
  for (const auto& page : pages) {
    const auto memory = machine::page_locked(page.bytes);
    pages_.push_back(machine::byte_view(memory.get(), page.bytes, at::kCPU, memory));
  }
}

// The device may still copy from and to the pages. One that has failed does not.
PinnedStore::~PinnedStore() {
  try {
    copies_.wait();
  } catch (const std::exception&) {
  }
}

comm::Work PinnedStore::fetch(const Page& page, std::span<std::byte> frame) {
  return copy(kept(page), machine::byte_view(frame.data(), page.bytes, copies_.device()));
}

comm::Work PinnedStore::publish(const Page& page, std::span<const std::byte> frame) {
  return copy(machine::byte_view(const_cast<std::byte*>(frame.data()), page.bytes, copies_.device()), kept(page));
}

// The copy runs after what the current stream has queued: earlier uses of the frame, or writes to what is published.
comm::Work PinnedStore::copy(const at::Tensor& from, const at::Tensor& to) const {
  return comm::Work([this, done = copies_.copy(from, to)] { copies_.hold_current(done); });
}

}  // namespace hortator::paging
