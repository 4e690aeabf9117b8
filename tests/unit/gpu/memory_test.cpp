#include "machine/device/memory.hpp"
#include "../accelerator/fixtures.hpp"
#include "accelerator/training/memory_by_owner.hpp"
#include "core/log.hpp"
#include "machine/device/device.hpp"
#include "support/catch.hpp"
#include "support/gpu.hpp"

using namespace hortator;

TEST_CASE("the batch size is reduced until it fits on the device") {
  if (!test::has_hardware()) return;
  Accelerator accelerator({.log_with = {}});
  const auto most = static_cast<std::int64_t>(machine::free_memory(accelerator.device()) >> 30U);
  const auto halves = [](std::int64_t size) { return size / 2; };
  std::vector<std::int64_t> tried;
  const auto found =
      find_executable_batch_size(accelerator, {.start = 2 * most, .next = halves}, [&](std::int64_t size) {
        tried.push_back(size);
        const auto batch =
            at::empty({size, std::int64_t{1} << 30}, at::TensorOptions(accelerator.device()).dtype(at::kByte));
        test::Net net;
        torch::optim::SGD sgd(net->parameters(), 0.1);
        auto [model, optimizer] = accelerator.prepare(net, sgd);
        accelerator.backward(model(at::ones({2, 3}, accelerator.device())).sum());
        optimizer.step();
      });
  CHECK(tried.size() >= 2);
  CHECK(found == tried.back());
  CHECK(found < 2 * most);
}

TEST_CASE("an unused device reports no memory, and page-locked memory has the requested size") {
  if (!test::has_gpu()) return;
  CHECK_NOTHROW(accelerator::device_memory({test::accelerator_type, 0}));
  constexpr std::size_t odd = (64U << 20U) + 4096;
  const auto memory = machine::page_locked(odd);
  auto view = at::from_blob(memory.get(), {static_cast<std::int64_t>(odd)}, at::kByte);
  CHECK(view.is_pinned());
  CHECK(at::equal(at::full({100}, 7, at::kByte), view.narrow(0, 0, 100).fill_(7).to(test::accelerator_type).cpu()));
}

TEST_CASE("out of memory logs which owners have the memory") {
  if (!test::has_gpu()) return;
  Accelerator accelerator({.log_with = {}});
  test::Net net;
  auto model = accelerator.prepare(net);
  int lines = 0;
  log::set_line_guard([&] { ++lines; });
  CHECK_THROWS(at::empty({std::int64_t{1} << 50}, at::TensorOptions(accelerator.device()).dtype(at::kByte)));
  log::set_line_guard({});
  CHECK(lines >= 1);
}

TEST_CASE("the device's memory is reported") {
  if (!test::has_gpu()) return;
  Accelerator accelerator({.log_with = {}});
  const auto before = accelerator.device_memory();
  {
    const auto block = at::empty({64 << 20}, at::TensorOptions(accelerator.device()).dtype(at::kByte));
    CHECK(accelerator.device_memory().allocated_bytes >= before.allocated_bytes + (64U << 20U));
  }
  const auto after = accelerator.device_memory();
  CHECK(after.allocated_bytes == before.allocated_bytes);
  CHECK(after.peak_bytes >= before.allocated_bytes + (64U << 20U));
  CHECK(after.reserved_bytes >= after.allocated_bytes);
}
