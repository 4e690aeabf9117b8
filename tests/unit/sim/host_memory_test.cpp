// Copies between the simulated accelerator and the host: page-locked memory is read and written late.
#include "machine/device/memory.hpp"

#include <atomic>
#include <thread>

#include "sim_fixture.hpp"

using namespace hortator;

namespace {

/// Copies page-locked memory to the device on a stream of its own, and releases it while the copy is under way. Returns
/// the number of wrong copies.
int copy_repeatedly(int device) {
  const c10::StreamGuard guard(test::side_stream(device));
  int wrong = 0;
  for (int i = 0; i < 20; ++i) {
    const std::int64_t count = 100 + 7 * device + i;
    at::Tensor copy;
    {
      const auto memory = machine::page_locked(static_cast<std::size_t>(count) * sizeof(float));
      copy = at::from_blob(memory.get(), {count}, at::kFloat).fill_(100 * device + i).to(sim::device(device), true);
    }
    wrong += at::equal(copy.cpu(), at::full({count}, 100 * device + i, at::kFloat)) ? 0 : 1;
  }
  return wrong;
}

}  // namespace

TEST_CASE("non-blocking copies read page-locked memory late, and other memory before they return", "[sim]") {
  test::start_clean(sim::Policy::late);
  for (const bool locked : {true, false}) {
    auto source = at::ones({1000});
    if (locked) source = source.pin_memory();
    CHECK(source.is_pinned() == locked);
    const auto copy = source.to(sim::device(), /*non_blocking=*/true);
    source.fill_(5);  // too early, if the memory is page-locked
    CHECK(copy.sum().item<float>() == (locked ? 5000 : 1000));
  }
}

TEST_CASE("non-blocking copies to the host wait, unless its memory is page-locked", "[sim]") {
  test::start_clean(sim::Policy::late);
  const auto source = at::full({1000}, 3.0, sim::device());
  const auto before = sim::counts().host_waits;
  auto locked = at::zeros({1000}).pin_memory();
  locked.copy_(source, /*non_blocking=*/true);
  CHECK(sim::counts().host_waits == before);
  CHECK(locked.sum().item<float>() == 0);
  auto plain = at::zeros({1000});
  plain.copy_(source, /*non_blocking=*/true);
  CHECK(sim::counts().host_waits == before + 1);
  CHECK(plain.sum().item<float>() == 3000);
  CHECK(locked.sum().item<float>() == 3000);
}

TEST_CASE("page-locked memory that is released is kept for copies under way", "[sim]") {
  test::start_clean(sim::Policy::late);
  at::Tensor copy;
  {
    const auto source = at::ones({100'000}).pin_memory();
    copy = source.to(sim::device(), true);
  }
  std::vector<at::Tensor> others;
  for (int i = 0; i < 4; ++i) others.push_back(at::zeros({100'000}).pin_memory());
  CHECK(copy.sum().item<float>() == 100'000);
  copy.reset();
}

TEST_CASE("page-locked memory of the program's own has the requested size, and is released after all work", "[sim]") {
  test::start_clean(sim::Policy::late);
  const auto before = sim::pinned_bytes();
  auto memory = machine::page_locked(4000);
  CHECK(sim::pinned_bytes() == before + 4000);
  auto view = at::from_blob(memory.get(), {1000}, at::kFloat).fill_(2);
  CHECK(view.is_pinned());
  const auto copy = view.to(sim::device(), true);
  memory.reset();
  CHECK(sim::pinned_bytes() == before);
  CHECK(copy.sum().item<float>() == 2000);
}

TEST_CASE("several threads take, copy and release page-locked memory at the same time", "[sim]") {
  for (const auto policy : test::policies) {
    test::start_clean(policy);
    const auto before = sim::pinned_bytes();
    std::atomic<int> wrong = 0;
    {
      std::vector<std::jthread> threads;
      for (int device = 0; device < sim::devices; ++device)
        threads.emplace_back([&wrong, device] { wrong += copy_repeatedly(device); });
    }
    CHECK(wrong == 0);
    CHECK(sim::pinned_bytes() == before);
    CHECK(sim::take_findings().empty());
  }
}

TEST_CASE("a thread that takes or releases page-locked memory makes no context on another device", "[sim]") {
  test::start_clean(sim::Policy::eager);
  sim::forget_contexts();
  const c10::DeviceGuard guard(sim::device(2));
  REQUIRE(sim::contexts() == std::vector<int>{2});
  std::shared_ptr<void> memory;
  std::thread([&] { memory = machine::page_locked(64); }).join();
  CHECK(sim::contexts() == std::vector<int>{2});
  std::thread([&] { memory.reset(); }).join();
  CHECK(sim::contexts() == std::vector<int>{2});
}

TEST_CASE("the host that reads page-locked memory before the copy has ended is named", "[sim]") {
  sim::watch_host(true);
  for (const bool waits : {true, false}) {
    test::start_clean(sim::Policy::late);
    auto locked = at::zeros({1000}).pin_memory();
    locked.copy_(at::ones({1000}, sim::device()), true);
    if (waits) test::sim_guard().synchronizeStream(test::current_stream());
    const auto sum = locked.sum();
    const auto findings = sim::take_findings();
    CHECK(findings.empty() == waits);
    if (!waits) CHECK_THAT(findings.front(), ContainsSubstring("'aten::sum' on the host is not ordered after 'copy_'"));
    test::sim_guard().synchronizeDevice(0);
  }
  sim::watch_host(false);
}
