#include "parallel/data_parallel/step_votes.hpp"

#include <mpi.h>

#include "support/catch.hpp"

using namespace hortator;
using parallel::Ballot;
using parallel::StepVotes;

TEST_CASE("all ranks learn one rank's vote, once, without gradients") {
  const auto world = mpi::Communicator::world();
  for (int rank = 0; rank < world.size(); ++rank) {
    Ballot mine{.stop_in_minutes = rank == world.rank()};
    StepVotes votes([&] { return mine; });
    CHECK(votes.count_stop(world).stop_in_minutes);
    CHECK_FALSE(votes.count_stop(world).stop_in_seconds);
    CHECK_FALSE(votes.count_save(world));
    mine = {.save = rank == world.rank()};
    CHECK(votes.count_save(world));
    mine = {};
    CHECK_FALSE(votes.count_save(world));
    CHECK(votes.count_stop(world).stop_in_minutes);  // a stop request is never withdrawn
  }
}

TEST_CASE("a verdict that came with the gradients needs no reduction of its own") {
  const auto world = mpi::Communicator::world();
  StepVotes votes([] { return Ballot{.stop_in_seconds = true}; });
  CHECK(votes.ballot().stop_in_seconds);
  CHECK_FALSE(votes.ballot().save);
  if (world.rank() != 0) return;  // a reduction would wait for the others forever
  votes.apply_verdict({.save = true});
  CHECK_FALSE(votes.count_stop(world).stop_in_seconds);
  CHECK(votes.count_save(world));
  votes.apply_verdict({.stop_in_seconds = true});
  votes.apply_verdict({});
  CHECK(votes.count_stop(world).stop_in_seconds);
  CHECK_FALSE(votes.count_save(world));
}
