// Ranks that read one file independently.
#include <ATen/ATen.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <hortator/hortator.hpp>

#include "fixtures.hpp"
#include "hdf5_fixture.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::data_test;

namespace {

std::vector<std::int64_t> gathered(Accelerator& accelerator, const Hdf5Rows& rows, const LoaderOptions& options) {
  auto loader = accelerator.prepare(data_loader(examples(rows, "x", "y"), options));
  std::vector<std::int64_t> samples;
  for (auto& batch : loader) {
    CHECK(at::equal(batch.data.select(1, 0), batch.target * 3));
    const auto targets = accelerator.gather_for_metrics(batch.target).contiguous();
    samples.insert(samples.end(), targets.const_data_ptr<std::int64_t>(),
                   targets.const_data_ptr<std::int64_t>() + targets.numel());
  }
  return samples;
}

}  // namespace

TEST_CASE("ranks read an HDF5 file by themselves, and together exactly all of it") {
  Accelerator accelerator({.cpu = true});
  constexpr std::int64_t count = 53;
  const std::string path = "shared.h5";
  accelerator.on_main_process([&] {
    std::filesystem::remove(path);
    add_hdf5(path, "x", {count, 3}, 8);
    add_hdf5(path, "y", {count}, 0);
  });
  accelerator.wait_for_everyone();
  const Hdf5Rows rows(path, {"x", "y"});
  for (const bool shuffle : {false, true}) {
    auto samples = gathered(accelerator, rows, {.batch_size = 4, .shuffle = shuffle});
    CHECK(std::ranges::is_sorted(samples) != shuffle);
    std::ranges::sort(samples);
    REQUIRE(samples.size() == count);
    for (std::int64_t i = 0; i < count; ++i) CHECK(samples[static_cast<std::size_t>(i)] == i);
  }
  accelerator.wait_for_everyone();
}
