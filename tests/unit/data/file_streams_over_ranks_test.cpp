// Streams of compressed files over real ranks.
#include <fstream>
#include <hortator/data.hpp>
#include <hortator/datasets.hpp>
#include <hortator/error.hpp>
#include <set>

#include "mpi/collectives.hpp"
#include "streams.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::data_test;

namespace {

LoaderBinding binding_of_all(const mpi::Communicator& world) {
  return {.rank = world.rank(), .world = world.size(), .gather_rows = [&world](std::int64_t value) {
            return mpi::all_gather(world, value);
          }};
}

/// Files with the numbers from 100 x file on.
std::vector<std::filesystem::path> number_files(int files) {
  std::vector<std::filesystem::path> paths;
  for (int file = 0; file < files; ++file) {
    paths.emplace_back("numbers-" + std::to_string(mpi::Communicator::world().rank()) + "-" + std::to_string(file));
    std::ofstream out(paths.back());
    for (int i = 0; i < 5 + file; ++i) out << 100 * file + i << '\n';
  }
  return paths;
}

at::Tensor numbers_in(const std::vector<std::string>& lines) {
  std::vector<std::int64_t> numbers;
  for (const auto& line : lines) numbers.push_back(std::stoll(line));
  return at::tensor(numbers);
}

}  // namespace

TEST_CASE("each rank reads files of its own, and all files are read once") {
  const auto world = mpi::Communicator::world();
  auto loader = data_loader(FilesPerRank<LineStream>(number_files(6)), {.batch_size = 2}, numbers_in);
  loader.bind(binding_of_all(world));
  for (const int pass : {0, 1}) {
    INFO(pass);
    std::set<std::int64_t> mine;
    for (auto& batch : loader) {
      const auto rows = values(batch);
      mine.insert(rows.begin(), rows.end());
    }
    for (const auto number : mine) CHECK(number / 100 % world.size() == world.rank());
    std::int64_t all = 0;
    for (const auto count : mpi::all_gather(world, static_cast<std::int64_t>(mine.size()))) all += count;
    CHECK(all == 5 + 6 + 7 + 8 + 9 + 10);
  }
}

TEST_CASE("fewer files than ranks are an error on all ranks") {
  const auto world = mpi::Communicator::world();
  if (world.size() == 1) return;
  auto loader = data_loader(FilesPerRank<LineStream>(number_files(1)), {.batch_size = 2}, numbers_in);
  const auto read = [&] {
    loader.bind(binding_of_all(world));
    for ([[maybe_unused]] auto& batch : loader) continue;
  };
  CHECK_THROWS_WITH(read(), ContainsSubstring("there is 1 file"));
}
