#include "checkpoint/write/retention.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <numeric>

#include "checkpoint/write/removal.hpp"
#include "scratch.hpp"
#include "support/catch.hpp"

using namespace hortator;
using checkpoint::surplus;
using Numbers = std::vector<std::int64_t>;

TEST_CASE("the newest stay, whatever order they are found in") {
  CHECK(surplus({4, 2, 3, 1}, {.total_limit = 2}) == Numbers{1, 2});
  CHECK(surplus({10, 9, 2}, {.total_limit = 1}) == Numbers{2, 9});
  CHECK(surplus({1, 2}, {.total_limit = 2}).empty());
  CHECK(surplus({}, {.total_limit = 1}).empty());
  CHECK(surplus({1, 2, 3}, {}).empty());
  CHECK(surplus({1, 2, 3}, {.keep_every = 2}).empty());
}

TEST_CASE("with any limits: never the newest, never one that is kept, and as many as the limit says are left") {
  for (std::int64_t count = 0; count <= 12; ++count) {
    Numbers all(static_cast<std::size_t>(count));
    std::iota(all.begin(), all.end(), 3);
    for (std::int64_t limit = 1; limit <= 5; ++limit) {
      for (std::int64_t every = 1; every <= 5; ++every) {
        INFO(count << " with limit " << limit << ", every " << every);
        const auto removed = surplus(all, {.total_limit = limit, .keep_every = every});
        const auto is_kept = [&](std::int64_t n) { return n % every == 0; };
        CHECK(std::none_of(removed.begin(), removed.end(), is_kept));
        const auto counted = count - std::count_if(all.begin(), all.end(), is_kept);
        CHECK(static_cast<std::int64_t>(removed.size()) == std::max<std::int64_t>(0, counted - limit));
        CHECK(std::is_sorted(removed.begin(), removed.end()));
      }
    }
  }
}

TEST_CASE("limits below one are refused") {
  CHECK_NOTHROW(checkpoint::check({.total_limit = 1, .keep_every = 1}));
  CHECK_THROWS_WITH(checkpoint::check({.total_limit = 0}), ContainsSubstring("total_limit is 0"));
  CHECK_THROWS_WITH(checkpoint::check({.keep_every = -2}), ContainsSubstring("keep_every is -2"));
}

TEST_CASE("remove_leftovers removes what removals and saves have left, but not a user's own copies") {
  const auto world = mpi::Communicator::world();
  const auto root = testing::scratch(world, "leftovers");
  if (world.rank() != 0) return;
  const std::string id = "20261121T075530.123456-9f3a51c2";
  const std::vector<std::string> kept = {
      "best.gone-" + id,         "checkpoint_3",          "checkpoint_3.bak",      "checkpoint_3.gone-" + id + "-copy",
      "checkpoint_3.gone-wrong", "checkpoint_3.new-idea", "checkpoint_3.old-" + id};
  const std::vector<std::string> removed = {"checkpoint_1.gone-" + id, "checkpoint_1.old-" + id + ".gone-" + id};
  const std::string begun = "checkpoint_4.new-" + id;
  const auto holds = [&](const std::string& name) { return std::filesystem::exists(root / name / "manifest.json"); };
  auto all = kept;
  all.insert(all.end(), removed.begin(), removed.end());
  all.push_back(begun);
  for (const auto& name : all) {
    std::filesystem::create_directory(root / name);
    std::ofstream(root / name / "manifest.json") << "{}";
  }
  checkpoint::remove_leftovers(root);
  for (const auto& name : removed) CHECK_FALSE(std::filesystem::exists(root / name));
  CHECK(holds(begun));  // another process may be saving it
  checkpoint::remove_leftovers(root, checkpoint::Leftovers::also_of_saves);
  CHECK_FALSE(std::filesystem::exists(root / begun));
  for (const auto& name : kept) CHECK(holds(name));
}
