#include <filesystem>

#include "core/text/text.hpp"
#include "mpi/collectives.hpp"
#include "runtime/identity/claim.hpp"
#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("of ranks that fail at the same time exactly one reports") {
  const auto comm = mpi::Communicator::world();
  const std::filesystem::path folder = "contention";
  for (int round = 0; round < 50; ++round) {
    const auto run = text::concat("run-", round);
    mpi::barrier(comm);
    const bool won = runtime::claim_failure(folder, run) == runtime::Claim::won;
    if (won) runtime::write_failure(folder, run, text::concat("{\"run_id\": \"", run, "\"}"));
    const bool won_again = runtime::claim_failure(folder, run) == runtime::Claim::won;
    CHECK(mpi::all_reduce(comm, won ? 1 : 0, mpi::Op::sum) == 1);
    CHECK(mpi::all_reduce(comm, won_again ? 1 : 0, mpi::Op::sum) == 0);
    CHECK(std::filesystem::exists(folder / "failure.json"));
  }
  mpi::barrier(comm);
  if (comm.rank() == 0) std::filesystem::remove_all(folder);
}
