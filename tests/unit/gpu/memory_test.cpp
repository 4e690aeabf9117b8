#include "../accelerator/fixtures.hpp"
#include "device/cuda.hpp"
#include "support/catch.hpp"
#include "support/gpu.hpp"

using namespace hortator;

TEST_CASE("the batch size goes down until it fits on the device") {
  if (!test::has_gpu()) return;
  Accelerator accelerator({.log_with = {}});
  const auto most = static_cast<std::int64_t>(device::free_memory(accelerator.device().index()) >> 30U);
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

TEST_CASE("the device's memory is told") {
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
