#include "paging/stores/staged_store.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "machine/device/copy_bytes.hpp"

namespace hortator::paging {
namespace {

using machine::byte_view;

// One that is read, one that is being copied, and one that is being published.
constexpr std::size_t max_without_waiting = 3;

bool is_copied(const machine::CopyStream::Done& copied) { return !copied || copied->query(); }

}  // namespace

StagedStore::StagedStore(std::unique_ptr<Store> inner, c10::Device device, Allocate allocate)
    : inner_(std::move(inner)), copies_(device), allocate_(std::move(allocate)) {}

// The device may still copy from and to the buffers. One that has failed does not.
StagedStore::~StagedStore() {
  try {
    copies_.wait();
  } catch (const std::exception&) {
  }
}

// The host waits for a copy only if all buffers are in use. Frees buffers that are too small.
std::shared_ptr<StagedStore::Buffer> StagedStore::take(std::size_t bytes) {
  made_ -= std::erase_if(free_, [&](const auto& one) { return one->bytes < bytes && is_copied(one->copied); });
  auto chosen = std::ranges::find_if(free_, [&](const auto& one) {
    return one->bytes >= bytes && (made_ >= max_without_waiting || is_copied(one->copied));
  });
  std::unique_ptr<Buffer> buffer;
  if (chosen != free_.end()) {
    buffer = std::move(*chosen);
    free_.erase(chosen);
    if (buffer->copied) buffer->copied->synchronize();
    buffer->copied.reset();
  } else {
    buffer = std::make_unique<Buffer>(Buffer{.memory = allocate_(bytes), .bytes = bytes});
    ++made_;
  }
  return {buffer.release(), [this](Buffer* used) { free_.emplace_back(used); }};
}

comm::Work StagedStore::fetch(const Page& page, std::span<std::byte> frame) {
  const auto buffer = take(page.bytes);
  const std::span there(static_cast<std::byte*>(buffer->memory.get()), page.bytes);
  const auto filled = std::make_shared<comm::Work>(inner_->fetch(page, there));
  return comm::Work([this, buffer, filled, frame] {
    filled->wait();
    buffer->copied = copies_.copy(byte_view(buffer->memory.get(), frame.size(), at::kCPU),
                                  byte_view(frame.data(), frame.size(), copies_.device()));
    copies_.hold_current(buffer->copied);
  });
}

comm::Work StagedStore::publish(const Page& page, std::span<const std::byte> frame) {
  const auto buffer = take(page.bytes);
  auto* device_memory = const_cast<std::byte*>(frame.data());
  const auto copied = copies_.copy(byte_view(device_memory, page.bytes, copies_.device()),
                                   byte_view(buffer->memory.get(), page.bytes, at::kCPU));
  return comm::Work([this, buffer, copied, &page] {
    if (copied) copied->synchronize();
    inner_->publish(page, {static_cast<const std::byte*>(buffer->memory.get()), page.bytes}).wait();
  });
}

}  // namespace hortator::paging
