#include "mpi/agree.hpp"

#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "support/catch.hpp"

using namespace hortator;

namespace {
std::string thrown_text(const std::function<void()>& work, std::optional<int>& rank) {
  try {
    work();
  } catch (const Error& error) {
    rank = error.rank();
    return error.what();
  }
  return "";
}
}  // namespace

TEST_CASE("work that succeeds on all ranks returns") {
  const auto comm = mpi::Communicator::world();
  int done = 0;
  mpi::all_or_none(comm, [&] { ++done; });
  CHECK(done == 1);
}

TEST_CASE("work that fails on any one rank throws on all, with that rank's problem") {
  const auto comm = mpi::Communicator::world();
  for (int culprit = 0; culprit < comm.size(); ++culprit) {
    std::optional<int> rank;
    const auto text = thrown_text(
        [&] {
          mpi::all_or_none(comm, [&] {
            if (comm.rank() == culprit) throw std::runtime_error(text::concat("no file on ", culprit));
          });
        },
        rank);
    CHECK(text == text::concat("no file on ", culprit));
    CHECK(rank == culprit);
  }
}

TEST_CASE("work whose texts differ throws on all ranks, and a failure comes first") {
  const auto comm = mpi::Communicator::world();
  int done = 0;
  mpi::all_or_none_alike(comm, "the plan", [&] {
    ++done;
    return std::string("a");
  });
  CHECK(done == 1);
  const int last = comm.size() - 1;
  std::optional<int> rank;
  const auto differing = thrown_text(
      [&] { mpi::all_or_none_alike(comm, "the plan", [&] { return comm.rank() == last ? "b" : "a"; }); }, rank);
  if (last > 0) {
    CHECK(differing.find(text::concat("The plan differs between ranks: rank 0 has 'a', rank ", last, " has 'b'")) == 0);
    CHECK(rank == last);
  }
  const auto failing = thrown_text(
      [&] {
        mpi::all_or_none_alike(comm, "the plan", [&]() -> std::string {
          if (comm.rank() == last) throw std::runtime_error("no file");
          return "a";
        });
      },
      rank);
  CHECK(failing == "no file");
  CHECK(rank == last);
}

TEST_CASE("an error within a part names the rank that users know") {
  const auto world = mpi::Communicator::world();
  const auto part = world.split(world.rank() == 0 ? 0 : 1, world.rank()).split(0, -world.rank());
  std::optional<int> rank;
  const bool is_first = part.rank() == 0;  // the last of the world's ranks, but for rank 0's part
  thrown_text(
      [&] {
        mpi::all_or_none(part, [&] {
          if (is_first) throw std::runtime_error("full");
        });
      },
      rank);
  CHECK(rank == (world.rank() == 0 ? 0 : world.size() - 1));
  rank.reset();
  if (part.size() > 1) {
    thrown_text([&] { mpi::same_on_all(part, is_first ? "a" : "b", "x"); }, rank);
    CHECK(rank == world.size() - 2);
  }
}

TEST_CASE("a usage error on one rank is one on all, and that rank keeps its source location") {
  const auto comm = mpi::Communicator::world();
  for (int culprit = 0; culprit < comm.size(); ++culprit) {
    try {
      mpi::all_or_none(comm, [&] {
        if (comm.rank() == culprit) throw UsageError({.what = "no such option"});
        if (comm.rank() > culprit) throw Error({.what = "a disk"});
      });
      FAIL("nothing was thrown");
    } catch (const UsageError& error) {
      CHECK(std::string(error.what()) == "no such option");
      CHECK(error.rank() == culprit);
      CHECK((std::string(error.where().file_name()).find("agree_test") != std::string::npos) ==
            (comm.rank() == culprit));
    }
  }
  CHECK_THROWS_AS(mpi::all_or_none(comm, [] { throw Error({.what = "a disk"}); }), Error);
  try {
    mpi::all_or_none(comm, [] { throw Error({.what = "a disk"}); });
  } catch (const UsageError&) {
    FAIL("an error became a wrong use");
  } catch (const Error&) {
  }
}

TEST_CASE("work that fails on all ranks names the lowest") {
  const auto comm = mpi::Communicator::world();
  std::optional<int> rank;
  const auto text = thrown_text(
      [&] { mpi::all_or_none(comm, [&] { throw std::runtime_error(text::concat("bad on ", comm.rank())); }); }, rank);
  CHECK(text == "bad on 0");
  CHECK(rank == 0);
}

TEST_CASE("values that differ are named on all ranks") {
  const auto comm = mpi::Communicator::world();
  mpi::same_on_all(comm, "1.0", "the version");
  if (comm.size() == 1) return;
  std::optional<int> rank;
  const auto text =
      thrown_text([&] { mpi::same_on_all(comm, comm.rank() == comm.size() - 1 ? "2.0" : "1.0", "the version"); }, rank);
  CHECK_THAT(text, ContainsSubstring("The version differs between ranks: rank 0 has '1.0'"));
  CHECK_THAT(text, ContainsSubstring("has '2.0'"));
  CHECK(rank == comm.size() - 1);
}
