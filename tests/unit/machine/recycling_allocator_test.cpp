#include "machine/memory/recycling_allocator.hpp"

#include <ATen/ATen.h>
#include <c10/core/CPUAllocator.h>

#include <optional>

#include "support/catch.hpp"

namespace hortator::paging {
namespace {

constexpr std::int64_t mib = std::int64_t{1} << 20;

at::Tensor bytes(std::int64_t count) { return at::empty({count}, at::kByte); }

}  // namespace

TEST_CASE("large blocks are recycled, small ones come from LibTorch", "[recycling_allocator]") {
  const auto base = machine::RecyclingAllocator::counters().used_bytes;
  const machine::RecyclingAllocator recycling(64 * mib);
  const void* first = nullptr;
  {
    const auto tensor = bytes(4 * mib);
    first = tensor.const_data_ptr();
    CHECK(machine::RecyclingAllocator::counters().used_bytes == base + 4 * mib);
  }
  CHECK(machine::RecyclingAllocator::counters().kept_bytes == 4 * mib);
  CHECK(bytes(4 * mib).const_data_ptr() == first);
  const auto small = bytes(mib - 1);
  CHECK(machine::RecyclingAllocator::counters().used_bytes == base);
}

TEST_CASE("unused blocks stay under the cap, the newest are kept", "[recycling_allocator]") {
  const machine::RecyclingAllocator recycling(8 * mib);
  {
    std::vector<at::Tensor> tensors;
    for (std::int64_t i = 2; i < 8; ++i) tensors.push_back(bytes(i * mib));
  }
  CHECK(machine::RecyclingAllocator::counters().kept_bytes <= 8 * mib);
  CHECK(machine::RecyclingAllocator::counters().kept_bytes > 0);
}

TEST_CASE("at its end memory is returned, LibTorch allocates as before and tensors stay valid",
          "[recycling_allocator]") {
  std::optional<machine::RecyclingAllocator> recycling(std::in_place, 64 * mib);
  const auto survivor = at::full({2 * mib}, 7, at::kByte);
  { const auto freed = bytes(4 * mib); }
  { const machine::RecyclingAllocator second(128 * mib); }
  CHECK(machine::RecyclingAllocator::counters().kept_bytes == 4 * mib);
  recycling.reset();
  CHECK(machine::RecyclingAllocator::counters().kept_bytes == 0);
  CHECK(survivor.eq(7).all().item<bool>());
  const auto used = machine::RecyclingAllocator::counters().used_bytes;
  const auto plain = bytes(4 * mib);
  CHECK(machine::RecyclingAllocator::counters().used_bytes == used);
}

TEST_CASE("memory can be allocated and freed by address, also after the end", "[recycling_allocator]") {
  const auto used = machine::RecyclingAllocator::counters().used_bytes;
  void* late = nullptr;
  {
    const machine::RecyclingAllocator recycling(64 * mib);
    auto* allocator = c10::GetCPUAllocator();
    void* large = allocator->raw_allocate(2 * mib);
    void* small = allocator->raw_allocate(100);
    CHECK(machine::RecyclingAllocator::counters().used_bytes == used + 2 * mib);
    allocator->raw_deallocate(small);
    allocator->raw_deallocate(large);
    CHECK(machine::RecyclingAllocator::counters().used_bytes == used);
    late = allocator->raw_allocate(3 * mib);
  }
  CHECK(machine::RecyclingAllocator::counters().used_bytes == used + 3 * mib);
  c10::GetCPUAllocator()->raw_deallocate(late);
  CHECK(machine::RecyclingAllocator::counters().used_bytes == used);
  CHECK(machine::RecyclingAllocator::counters().kept_bytes == 0);
}

// oneDNN allocates its work space from LibTorch by raw calls.
TEST_CASE("convolutions work while memory is recycled", "[recycling_allocator]") {
  const at::NoGradGuard no_grad;
  const auto input = at::rand({4, 16, 96, 96});
  const auto weight = at::rand({64, 16, 3, 3});
  const auto expected = at::conv2d(input, weight);
  const machine::RecyclingAllocator recycling(64 * mib);
  CHECK(at::equal(at::conv2d(input, weight), expected));
}

TEST_CASE("trim() returns memory at once and keeps the peak", "[recycling_allocator]") {
  const machine::RecyclingAllocator recycling(64 * mib);
  machine::RecyclingAllocator::reset_peak();
  const auto base = machine::RecyclingAllocator::counters().used_bytes;
  { const auto freed = bytes(4 * mib); }
  machine::RecyclingAllocator::trim();
  CHECK(machine::RecyclingAllocator::counters().kept_bytes == 0);
  CHECK(machine::RecyclingAllocator::counters().peak_used_bytes == base + 4 * mib);
}

}  // namespace hortator::paging
