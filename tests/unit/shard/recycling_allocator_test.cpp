#include "shard/recycling_allocator.hpp"

#include <ATen/ATen.h>
#include <c10/core/CPUAllocator.h>

#include <optional>

#include "support/catch.hpp"

namespace hortator::shard {
namespace {

constexpr std::int64_t mib = std::int64_t{1} << 20;

at::Tensor bytes(std::int64_t count) { return at::empty({count}, at::kByte); }

}  // namespace

TEST_CASE("Large blocks are used again, small ones are LibTorch's", "[recycling_allocator]") {
  const auto base = RecyclingAllocator::counters().used_bytes;
  const RecyclingAllocator recycling(64 * mib);
  const void* first = nullptr;
  {
    const auto tensor = bytes(4 * mib);
    first = tensor.const_data_ptr();
    CHECK(RecyclingAllocator::counters().used_bytes == base + 4 * mib);
  }
  CHECK(RecyclingAllocator::counters().kept_bytes == 4 * mib);
  CHECK(bytes(4 * mib).const_data_ptr() == first);
  const auto small = bytes(mib - 1);
  CHECK(RecyclingAllocator::counters().used_bytes == base);
}

TEST_CASE("What is kept stays under the cap, the newest of it", "[recycling_allocator]") {
  const RecyclingAllocator recycling(8 * mib);
  {
    std::vector<at::Tensor> tensors;
    for (std::int64_t i = 2; i < 8; ++i) tensors.push_back(bytes(i * mib));
  }
  CHECK(RecyclingAllocator::counters().kept_bytes <= 8 * mib);
  CHECK(RecyclingAllocator::counters().kept_bytes > 0);
}

TEST_CASE("At its end memory goes back, LibTorch has its allocator again, tensors stay good", "[recycling_allocator]") {
  const auto* former = c10::GetCPUAllocator();
  std::optional<RecyclingAllocator> recycling(std::in_place, 64 * mib);
  CHECK(c10::GetCPUAllocator() != former);
  const auto survivor = at::full({2 * mib}, 7, at::kByte);
  { const auto freed = bytes(4 * mib); }
  { const RecyclingAllocator second(128 * mib); }
  CHECK(c10::GetCPUAllocator() != former);
  CHECK(RecyclingAllocator::counters().kept_bytes == 4 * mib);
  recycling.reset();
  CHECK(c10::GetCPUAllocator() == former);
  CHECK(RecyclingAllocator::counters().kept_bytes == 0);
  CHECK(survivor.eq(7).all().item<bool>());
}

TEST_CASE("trim() gives back at once, the peak is kept", "[recycling_allocator]") {
  const RecyclingAllocator recycling(64 * mib);
  RecyclingAllocator::reset_peak();
  const auto base = RecyclingAllocator::counters().used_bytes;
  { const auto freed = bytes(4 * mib); }
  RecyclingAllocator::trim();
  CHECK(RecyclingAllocator::counters().kept_bytes == 0);
  CHECK(RecyclingAllocator::counters().peak_used_bytes == base + 4 * mib);
}

}  // namespace hortator::shard
