#include <ATen/ATen.h>

#include "interception/claimed_operators.hpp"
#include "interception/storage_memory.hpp"
#include "parallel/zero/disk_arrays.hpp"
#include "support/catch.hpp"
#include "unit/checkpoint/file_limit.hpp"
#include "unit/paging/fixtures.hpp"

namespace hortator::paging {
namespace {

std::vector<parallel::DiskArrays::Spec> three_arrays() {
  return {{.name = "a", .elements = 1000},
          {.name = "b", .elements = 3, .type = at::kDouble},
          {.name = "c", .elements = 2000}};
}

void fill_with_number(std::size_t i, const at::Tensor& array) { array.fill_(static_cast<double>(i) + 1); }

bool lacks_memory(const at::Tensor& tensor) { return interception::memory_of(tensor.storage()) == nullptr; }

}  // namespace

TEST_CASE("Arrays have the values that they were filled with, and keep what is written", "[disk_arrays]") {
  const auto folder = testing::folder("disk_arrays");
  parallel::DiskArrays arrays(three_arrays(), {.folder = folder, .resident_bytes = 1});
  arrays.fill(fill_with_number);
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(lacks_memory(arrays.array(i)));
      CHECK(arrays.array(i).sum().item<double>() ==
            (static_cast<double>(i) + 1 + round) * static_cast<double>(arrays.array(i).numel()));
      arrays.array(i).add_(1);
    }
  }
  CHECK(std::filesystem::is_empty(folder));
}

TEST_CASE("A range of an array is paged with it, and is not a view", "[disk_arrays]") {
  const auto folder = testing::folder("disk_arrays_stretch");
  parallel::DiskArrays arrays(three_arrays(), {.folder = folder, .resident_bytes = 1});
  arrays.fill(fill_with_number);
  auto range = arrays.range(2, 100, {4, 5});
  CHECK(!range.is_view());
  CHECK(lacks_memory(range));
  range.fill_(7);
  CHECK(lacks_memory(range));
  CHECK(arrays.array(2).narrow(0, 100, 20).eq(7).all().item<bool>());
  CHECK(arrays.array(2).sum().item<double>() == 3.0 * 1980 + 7.0 * 20);
  const interception::Hold held(std::span(&arrays.array(2), 1), interception::Access::read);
  CHECK(!lacks_memory(range));
}

TEST_CASE("No two arrays are in memory while they are made", "[disk_arrays]") {
  const auto folder = testing::folder("disk_arrays_one");
  std::vector<at::Tensor> seen;
  const auto values = [&](std::size_t, const at::Tensor& array) {
    for (const auto& former : seen) CHECK(lacks_memory(former));
    CHECK(!lacks_memory(array));
    array.zero_();
    seen.push_back(array);
  };
  parallel::DiskArrays(three_arrays(), {.folder = folder}).fill(values);
  CHECK(seen.size() == 3);
}

TEST_CASE("A disk that is too small for the arrays throws before anything is filled", "[disk_arrays]") {
  const auto folder = testing::folder("disk_arrays_full");
  const testing::FileLimit limit(1 << 10);
  CHECK_THROWS_WITH(parallel::DiskArrays(three_arrays(), {.folder = folder}), ContainsSubstring("reserve"));
  CHECK(std::filesystem::is_empty(folder));
}

}  // namespace hortator::paging
