#include <ATen/ATen.h>

#include <hortator/data.hpp>
#include <hortator/datasets.hpp>
#include <hortator/error.hpp>
#include <thread>

#include "fixtures.hpp"
#include "hdf5_fixture.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::data_test;

namespace {

std::filesystem::path make(const std::string& name) {
  std::filesystem::remove(name);
  add_hdf5(name, "x", {10, 3}, 4);
  add_hdf5(name, "y", {10}, 0);
  add_hdf5(name, "short", {9}, 0);
  return name;
}

}  // namespace

TEST_CASE("a sample is one row of each dataset") {
  const Hdf5Rows rows(make("rows.h5"), {"x", "y"});
  CHECK(rows.size() == 10);
  CHECK(rows.chunk_length() == 4);
  CHECK(rows.columns() == std::vector<std::string>{"x", "y"});
  const auto batch = rows.get_batch(Samples{9, 0, 1});
  CHECK(at::equal(batch.at("x"), at::tensor({27, 28, 29, 0, 1, 2, 3, 4, 5}, at::kLong).view({3, 3})));
  CHECK(at::equal(batch.at("y"), at::tensor({9, 0, 1}, at::kLong)));
  CHECK(rows.get(4).at("y").item<int>() == 4);
  CHECK(Hdf5Rows("rows.h5", {"y"}).chunk_length() == 1);
}

TEST_CASE("datasets that are missing or of other lengths are named with their file") {
  make("wrong.h5");
  CHECK_THROWS_WITH(Hdf5Rows("wrong.h5", {"x", "short"}), ContainsSubstring("wrong.h5") &&
                                                              ContainsSubstring("10 rows") &&
                                                              ContainsSubstring("'short' has 9"));
  CHECK_THROWS_WITH(Hdf5Rows("wrong.h5", {"z"}), ContainsSubstring("'z' of \"wrong.h5\""));
  CHECK_THROWS_WITH(Hdf5Rows("wrong.h5", {}), ContainsSubstring("No columns of"));
  CHECK_THROWS_WITH(Hdf5Rows("wrong.h5", {"x"}).get(10), ContainsSubstring("no sample 10"));
  CHECK_THROWS_WITH(Hdf5Rows("nowhere.h5", {"x"}), ContainsSubstring("nowhere.h5"));
  CHECK_THROWS_WITH(Hdf5Rows(write("text.h5", "not HDF5"), {"x"}), ContainsSubstring("text.h5"));
}

TEST_CASE("an HDF5 file that was cut is refused, and one that is cut in use is an error") {
  const auto path = make("cut.h5");
  const Hdf5Rows rows(path, {"x", "y"});
  CHECK_NOTHROW(rows.get(9));
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  CHECK_THROWS_AS(rows.get(9), Error);
  CHECK_THROWS_AS(rows.get(0), Error);
  std::filesystem::copy_file(path, "half.h5", std::filesystem::copy_options::overwrite_existing);
  CHECK_THROWS_WITH(Hdf5Rows("half.h5", {"x"}), ContainsSubstring("half.h5"));
}

TEST_CASE("several threads read one file") {
  const Hdf5Rows rows(make("threads.h5"), {"x", "y"});
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (std::int64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::int64_t i = 0; i < 50; ++i) {
        const auto sample = (thread + i) % 10;
        if (rows.get(sample).at("y").item<std::int64_t>() != sample) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
}
