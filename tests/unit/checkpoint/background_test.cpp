// Saving while the program goes on.
#include "checkpoint/background_save.hpp"

#include <unistd.h>

#include "checkpoint/reader.hpp"
#include "file_limit.hpp"
#include "scratch.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::testing;
using checkpoint::Reader;

namespace {
std::string problem_on_all(const mpi::Communicator& comm, const std::string& mine) {
  for (const auto& other : mpi::all_gather(comm, std::string_view(mine))) CHECK(other == mine);
  return mine;
}
}  // namespace

TEST_CASE("what was there when save returned is saved, whatever becomes of it then") {
  const auto comm = mpi::Communicator::world();
  const auto root = scratch(comm, "background");
  checkpoint::BackgroundSave saves;
  saves.wait(comm);
  auto state = snapshot(comm.rank(), 1);
  for (int variant = 1; variant <= 5; ++variant) {
    const auto weight = state.common.get<at::Tensor>("models/0/fc1.weight");
    const auto strided = state.common.get<at::Tensor>("models/0/strided");
    const auto expected = weight.clone();
    CHECK(saves.start(comm, root / "checkpoint", state, {}) == root / "checkpoint");
    weight.add_(1);
    strided.zero_();
    saves.wait(comm);
    const Reader reader(root / "checkpoint");
    CHECK(bitwise_equal(reader.read("models/0/fc1.weight"), expected));
    for (int rank = 0; rank < comm.size(); ++rank) CHECK(reader.own(rank).get<int>("rng/seed") == 100 + rank);
    CHECK(entries(reader.folder()) == 2);
    mpi::barrier(comm);
  }
}

TEST_CASE("rank 0 knows how long a save takes until it is there") {
  const auto comm = mpi::Communicator::world();
  const auto root = scratch(comm, "background_times");
  checkpoint::BackgroundSave saves;
  CHECK_FALSE(saves.longest().has_value());
  CHECK_FALSE(saves.under_way_for().has_value());
  saves.start(comm, root / "checkpoint", snapshot(comm.rank(), 1), {});
  saves.wait(comm);
  CHECK(saves.longest().has_value() == (comm.rank() == 0));
  CHECK_FALSE(saves.under_way_for().has_value());
  const auto before = saves.longest();
  saves.start(comm, root / "checkpoint", snapshot(comm.rank(), 2), {});
  saves.wait(comm);
  CHECK(saves.longest() >= before);
  mpi::barrier(comm);
}

TEST_CASE("the next save waits for the one before, and the end for the last") {
  const auto comm = mpi::Communicator::world();
  const auto root = scratch(comm, "background_next");
  {
    checkpoint::BackgroundSave saves;
    for (int variant = 1; variant <= 4; ++variant)
      saves.start(comm, root / std::to_string(variant), snapshot(comm.rank(), variant), {});
    // Nobody waits: as when an exception ends the program.
  }
  mpi::barrier(comm);
  for (int variant = 1; variant <= 4; ++variant)
    CHECK(Reader(root / std::to_string(variant)).values().get<int>("epoch") == variant);
  mpi::barrier(comm);
}

TEST_CASE(
    "what fails on one rank is told to all at the next call; the older checkpoint stays and the next save works") {
  const auto comm = mpi::Communicator::world();
  const auto root = scratch(comm, "background_failure");
  checkpoint::BackgroundSave saves;
  saves.start(comm, root / "checkpoint", snapshot(comm.rank(), 1), {});
  saves.wait(comm);
  for (int culprit = 0; culprit < comm.size(); ++culprit) {
    {
      std::optional<FileLimit> limit;
      if (comm.rank() == culprit) limit.emplace(50'000);
      saves.start(comm, root / "checkpoint", snapshot(comm.rank(), 2), {});
      const auto problem = error_of([&] { saves.wait(comm); });
      CHECK_THAT(problem_on_all(comm, problem), ContainsSubstring("File too large"));
    }
    CHECK(Reader(root / "checkpoint").values().get<int>("epoch") == 1);
    CHECK(entries(root) == 1);
    mpi::barrier(comm);
    CHECK_NOTHROW(saves.wait(comm));
  }
  saves.start(comm, root / "checkpoint", snapshot(comm.rank(), 3), {});
  saves.wait(comm);
  CHECK(Reader(root / "checkpoint").values().get<int>("epoch") == 3);
  CHECK(entries(root) == 1);
  mpi::barrier(comm);
}
