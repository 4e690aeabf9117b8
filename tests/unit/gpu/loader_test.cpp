#include "../accelerator/fixtures.hpp"
#include "support/catch.hpp"
#include "support/gpu.hpp"

using namespace hortator;

namespace {

// One pass over numbered rows. True if all arrive in order on the device.
bool is_whole_pass(Accelerator& accelerator, const LoaderOptions& options, bool slow_body) {
  constexpr std::int64_t rows = 640;
  const auto numbers = at::arange(rows, at::kFloat).unsqueeze(1).repeat({1, 2048});
  auto loader = accelerator.prepare(data_loader(tensor_dataset(numbers, numbers.select(1, 0)), options));
  std::vector<at::Tensor> sums;
  for (auto& batch : loader) {
    if (batch.data.device() != accelerator.device() || batch.target.device() != accelerator.device()) return false;
    auto work = batch.data;
    for (int i = 0; slow_body && i < 50; ++i) work = at::sin(work);  // copies finish before the body
    sums.push_back(batch.data.sum(1) + 0 * work.sum(1) - 2048 * batch.target);
    batch = {};  // its memory may be used again while the device still reads it
  }
  const auto all = at::cat(sums);
  return all.size(0) == rows && all.eq(0).all().item<bool>();
}

}  // namespace

TEST_CASE("batches arrive complete on the device, read ahead or not, page-locked or not") {
  if (!test::has_gpu()) return;
  Accelerator accelerator({.log_with = {}});
  for (const bool slow_body : {false, true}) {
    for (const bool pins : {true, false}) {
      CHECK(is_whole_pass(accelerator, {.batch_size = 16, .pin_memory = pins}, slow_body));
      CHECK(is_whole_pass(accelerator, {.batch_size = 16, .prefetch = 0, .pin_memory = pins}, slow_body));
      CHECK(is_whole_pass(accelerator, {.batch_size = 16, .prefetch = 4, .workers = 3, .pin_memory = pins}, slow_body));
    }
  }
}

TEST_CASE("a loop that is left early releases everything") {
  if (!test::has_gpu()) return;
  Accelerator accelerator({.log_with = {}});
  const auto numbers = at::arange(4096, at::kFloat).view({1024, 4});
  auto loader = accelerator.prepare(data_loader(tensor_dataset(numbers), {.batch_size = 8, .prefetch = 3}));
  for (int pass = 0; pass < 5; ++pass) {
    std::int64_t seen = 0;
    for (auto& batch : loader) {
      CHECK(at::equal(batch.cpu(), numbers.narrow(0, seen * 8, 8)));
      if (++seen == 3) break;
    }
  }
}

TEST_CASE("device_placement, of the Accelerator or of one loader, decides whether batches move to the device") {
  if (!test::has_gpu()) return;
  const auto numbers = at::arange(8, at::kFloat).view({4, 2});
  for (const bool moves : {true, false}) {
    Accelerator accelerator({.device_placement = moves, .log_with = {}});
    const auto is_moved = [&](const PrepareDataLoaderOptions& chosen) {
      auto loader = accelerator.prepare_data_loader(
          data_loader(tensor_dataset(numbers, numbers.select(1, 0)), {.batch_size = 4}), chosen);
      bool all = true;
      for (auto& batch : loader) all = all && batch.data.device() == accelerator.device();
      return all;
    };
    CHECK(is_moved({}) == moves);
    CHECK(is_moved({.device_placement = !moves}) == !moves);
  }
}
