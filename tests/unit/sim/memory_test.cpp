// Memory of the simulated accelerator is reused at once, NaN until it is written, and can run out.
#include <c10/core/CachingDeviceAllocator.h>

#include "machine/device/device.hpp"
#include "machine/device/memory.hpp"
#include "sim_fixture.hpp"

using namespace hortator;
using test::order;
using test::side_stream;

namespace {

constexpr std::int64_t elements = 5000;  // no other test has blocks of this size

at::Tensor filled(double value) { return at::full({elements}, value, sim::device()); }

}  // namespace

TEST_CASE("new memory is NaN, and a block that is released is the next one's", "[sim]") {
  for (const auto policy : test::policies) {
    test::start_clean(policy);
    const void* address = nullptr;
    {
      const auto first = filled(1);
      address = first.const_data_ptr();
    }
    const auto second = at::empty({elements}, sim::device());
    CHECK(second.const_data_ptr() == address);
    CHECK(second.isnan().all().item<bool>());
  }
}

TEST_CASE("work that was submitted before its memory is released reads the old values", "[sim]") {
  for (const auto policy : test::policies) {
    test::start_clean(policy);
    auto first = filled(1);
    const auto sum = first.sum();
    first.reset();
    const auto second = filled(7);
    CHECK(sum.item<float>() == elements);
    CHECK(sim::take_findings().empty());
  }
}

TEST_CASE("memory that another stream reads is reused too early, unless the stream is recorded", "[sim]") {
  for (const bool records : {true, false}) {
    test::start_clean(sim::Policy::late);
    const auto side = side_stream();
    auto first = filled(1);
    order(test::current_stream(), side);
    at::Tensor copy;
    {
      const c10::StreamGuard guard(side);
      copy = first * 1;
    }
    if (records) test::sim_guard().recordDataPtrOnStream(first.storage().data_ptr(), side);
    const auto deferred = sim::counts().deferred_blocks;
    first.reset();
    CHECK((sim::counts().deferred_blocks > deferred) == records);
    const auto second = filled(7);
    CHECK(second.sum().item<float>() == 7 * elements);
    order(side, test::current_stream());
    CHECK((copy.sum().item<float>() == elements) == records);
    const auto findings = sim::take_findings();
    CHECK(findings.empty() == records);
    if (!records) CHECK_THAT(findings.front(), ContainsSubstring("'free' on stream 1 is not ordered after 'aten::mul"));
    order(test::current_stream(), side);
    test::sim_guard().synchronizeDevice(0);
  }
}

TEST_CASE("a deferred block is reused once the other stream has passed", "[sim]") {
  test::start_clean(sim::Policy::late);
  const auto side = side_stream();
  const void* address = nullptr;
  {
    const auto first = filled(1);
    address = first.const_data_ptr();
    order(test::current_stream(), side);
    const c10::StreamGuard guard(side);
    const auto copy = first * 1;
    test::sim_guard().recordDataPtrOnStream(first.storage().data_ptr(), side);
  }
  CHECK(filled(2).const_data_ptr() != address);
  test::sim_guard().synchronizeStream(side);
  const auto third = filled(2);
  const auto fourth = filled(2);
  CHECK((third.const_data_ptr() == address || fourth.const_data_ptr() == address));
}

TEST_CASE("memory runs out: the cache is emptied first, then observers are called and it throws", "[sim]") {
  test::start_clean(sim::Policy::late);
  auto* const allocator = c10::getDeviceAllocator(c10::kPrivateUse1);
  allocator->emptyCache();
  const auto before = sim::reserved_bytes(0);
  constexpr std::int64_t million = 1'000'000;
  const auto options = at::TensorOptions(sim::device()).dtype(at::kByte);
  sim::set_memory_limit(0, before + 5 * million);
  { const auto block = at::empty({3 * million}, options); }
  const auto other = at::empty({4 * million}, options);  // does not fit beside the cached block
  std::uint64_t asked = 0;
  machine::on_out_of_memory([&](std::uint64_t count) { asked = count; });
  CHECK_THROWS_AS(at::empty({2 * million}, options), c10::OutOfMemoryError);
  machine::on_out_of_memory({});
  CHECK(asked >= 2 * million);
  CHECK(allocator->getDeviceStats(0).num_ooms == 1);
  CHECK(machine::free_memory(sim::device()) < 2 * million);
  CHECK_NOTHROW(at::empty({2 * million}, options.device(sim::device(1))));
  sim::set_memory_limit(0, 0);
  CHECK_NOTHROW(at::empty({2 * million}, options));
}

TEST_CASE("the allocator reports what tensors have, and the peak", "[sim]") {
  test::start_clean(sim::Policy::eager);
  auto* const allocator = c10::getDeviceAllocator(c10::kPrivateUse1);
  allocator->resetPeakStats(0);
  const auto before = sim::allocated_bytes(0);
  {
    const auto block = at::empty({1 << 20}, at::TensorOptions(sim::device()).dtype(at::kByte));
    CHECK(sim::allocated_bytes(0) == before + (1U << 20U));
  }
  CHECK(sim::allocated_bytes(0) == before);
  constexpr auto all = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  CHECK(allocator->getDeviceStats(0).allocated_bytes[all].peak == static_cast<std::int64_t>(before + (1U << 20U)));
}
