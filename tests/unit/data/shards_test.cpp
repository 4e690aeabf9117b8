// Streams that give each rank its own part, with real ranks.
#include <hortator/data.hpp>
#include <hortator/error.hpp>

#include "mpi/collectives.hpp"
#include "streams.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::data_test;

namespace {

/// Files of different lengths, distributed to the ranks in turn. Sample 7 of file 3 is 3007.
struct Files {
  std::vector<std::int64_t> lengths;
  std::int64_t bad = -1;
  int world = 1;
  int rank = 0;
  std::size_t file = 0;
  std::int64_t at = 0;

  void shard(int ranks, int me) {
    world = ranks;
    rank = me;
  }
  void reset() {
    file = static_cast<std::size_t>(rank);
    at = 0;
  }
  std::optional<std::int64_t> next() {
    while (file < lengths.size() && at == lengths[file]) {
      file += static_cast<std::size_t>(world);
      at = 0;
    }
    if (file >= lengths.size()) return std::nullopt;
    const auto sample = 1000 * static_cast<std::int64_t>(file) + at++;
    if (sample == bad) throw std::out_of_range("the file is torn");
    return sample;
  }
};

Batch part_of(const Files& files, int world, int rank) {
  Batch part;
  for (auto file = static_cast<std::size_t>(rank); file < files.lengths.size();
       file += static_cast<std::size_t>(world)) {
    for (std::int64_t i = 0; i < files.lengths[file]; ++i) part.push_back(1000 * static_cast<std::int64_t>(file) + i);
  }
  return part;
}

LoaderBinding binding(const mpi::Communicator& world) {
  return {.rank = world.rank(), .world = world.size(), .gather_rows = [&world](std::int64_t value) {
            return mpi::all_gather(world, value);
          }};
}

const Files files{.lengths = {5, 0, 7, 2, 9, 4, 1, 3, 6, 2}};

// The part without what was repeated.
Batch seen_in(const DataLoader<at::Tensor>& loader, int rank, std::size_t at_most = 1000) {
  Batch seen;
  std::size_t steps = 0;
  for (auto& batch : loader) {
    const auto rows = values(batch);
    CHECK(rows.size() == 2);
    seen.insert(seen.end(), rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(loader.new_samples(rank)));
    if (++steps == at_most) break;
  }
  return seen;
}

}  // namespace

TEST_CASE("each rank reads its part, and all go as many steps as the longest has") {
  const auto world = mpi::Communicator::world();
  for (const int prefetch : {0, 2}) {
    auto loader = bound_stream(files, {.batch_size = 2, .prefetch = prefetch}, binding(world));
    CHECK_FALSE(loader.has_size());
    std::size_t longest = 0;
    for (int rank = 0; rank < world.size(); ++rank)
      longest = std::max(longest, part_of(files, world.size(), rank).size());
    for (const std::int64_t pass : {0, 1}) {
      Batch seen;
      std::size_t steps = 0;
      for (auto& batch : loader) {
        const auto rows = values(batch);
        CHECK(rows.size() == 2);
        seen.insert(seen.end(), rows.begin(),
                    rows.begin() + static_cast<std::ptrdiff_t>(loader.new_samples(world.rank())));
        ++steps;
        CHECK(loader.end_of_dataloader() == (steps == (longest + 1) / 2));
      }
      CHECK(steps == (longest + 1) / 2);
      CHECK(seen == part_of(files, world.size(), world.rank()));
      CHECK(loader.epoch() == pass + 1);
    }
  }
}

TEST_CASE("with drop_last all stop when one rank has no full batch") {
  const auto world = mpi::Communicator::world();
  auto loader = bound_stream(files, {.batch_size = 2, .drop_last = true}, binding(world));
  std::size_t shortest = 1000;
  for (int rank = 0; rank < world.size(); ++rank)
    shortest = std::min(shortest, part_of(files, world.size(), rank).size());
  CHECK(read(loader).size() == shortest / 2);
}

TEST_CASE("parts are resumed on as many ranks, and refused on others") {
  const auto world = mpi::Communicator::world();
  for (const std::size_t stop : {1, 2, 4}) {
    auto stopped = bound_stream(files, {.batch_size = 2}, binding(world));
    auto seen = seen_in(stopped, world.rank(), stop);
    auto resumed = bound_stream(files, {.batch_size = 2}, binding(world));
    resumed.load(stopped.state());
    const auto rest = seen_in(resumed, world.rank());
    seen.insert(seen.end(), rest.begin(), rest.end());
    CHECK(seen == part_of(files, world.size(), world.rank()));
    auto binding_of_more = binding(world);
    binding_of_more.world += 1;
    auto more = bound_stream(files, {.batch_size = 2}, binding_of_more);
    CHECK_THROWS_WITH(more.load(stopped.state()), ContainsSubstring("ranks' own order"));
  }
}

TEST_CASE("a part that is empty, or cannot be read, is an error on all ranks") {
  const auto world = mpi::Communicator::world();
  if (world.size() == 1) return;
  auto few = bound_stream(Files{.lengths = {5}}, {.batch_size = 2}, binding(world));
  CHECK_THROWS_WITH(read(few), ContainsSubstring("The part of the stream for rank 1 has no samples"));
  auto torn = bound_stream(Files{.lengths = {9, 9, 9, 9}, .bad = 1004}, {.batch_size = 2}, binding(world));
  CHECK_THROWS_WITH(read(torn), world.rank() == 1 ? ContainsSubstring("the file is torn")
                                                  : ContainsSubstring("Rank 1 could not read its part"));
  CHECK_FALSE(torn.iterating());
}
