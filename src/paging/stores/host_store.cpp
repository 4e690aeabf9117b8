#include "paging/stores/host_store.hpp"

#include <ATen/ops/empty.h>

#include <cstring>

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

}  // namespace hortator::paging
