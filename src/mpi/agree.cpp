#include "mpi/agree.hpp"

#include <array>
#include <limits>

#include "base/hash.hpp"
#include "base/text.hpp"
#include "mpi/collectives.hpp"

namespace hortator::mpi {

void agree(const Communicator& comm, const Verdict& mine) {
  const CollectiveScope here(comm, {.verb = "agreement"});
  constexpr int nobody = std::numeric_limits<int>::max();
  const int culprit = all_reduce(comm, mine.failed ? comm.rank() : nobody, MPI_MIN);
  if (culprit == nobody) return;
  const auto problem = broadcast(comm, std::string_view(mine.problem), culprit);
  throw Error({.what = problem}).on_rank(culprit);
}

bool equal_on_all(const Communicator& comm, std::uint64_t value) {
  const CollectiveScope here(comm, {.verb = "comparison", .bytes = sizeof value});
  // min(x) and min(~x) = ~max(x) in one reduction.
  std::array<std::uint64_t, 2> bounds = {value, ~value};
  check(MPI_Allreduce(MPI_IN_PLACE, bounds.data(), 2, MPI_UINT64_T, MPI_MIN, comm.get()), "MPI_Allreduce");
  return bounds[0] == ~bounds[1];
}

void same_on_all(const Communicator& comm, std::string_view value, std::string_view name) {
  if (equal_on_all(comm, base::hash(value))) return;

  const auto values = all_gather(comm, value);
  for (int rank = 1; rank < comm.size(); ++rank) {
    const auto& other = values[static_cast<std::size_t>(rank)];
    if (other != values[0]) {
      throw Error({.what = text::concat(name, " differs between ranks: rank 0 has ", text::quote(values[0]), ", rank ",
                                        rank, " has ", text::quote(other)),
                   .why = "all ranks must do the same",
                   .hint = "start every rank from the same program with the same settings"})
          .on_rank(rank);
    }
  }
}

}  // namespace hortator::mpi
