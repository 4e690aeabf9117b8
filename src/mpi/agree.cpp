#include "mpi/agree.hpp"

#include <array>
#include <limits>

#include "core/hash.hpp"
#include "core/text/text.hpp"
#include "mpi/collectives.hpp"

namespace hortator::mpi {
namespace {

// Two numbers for each rank, so that one reduction yields both the rank and the type of error.
int number_of(int rank, bool is_usage) { return 2 * rank + (is_usage ? 1 : 0); }

}  // namespace

LocalOutcome LocalOutcome::of(const std::exception& error) {
  const auto* known = dynamic_cast<const Error*>(&error);
  return {.failed = true,
          .problem = error.what(),
          .is_usage = dynamic_cast<const UsageError*>(&error) != nullptr,
          .where = known ? std::optional(known->where()) : std::nullopt};
}

void agree(const Communicator& comm, const LocalOutcome& mine) {
  const CollectiveScope here(comm, {.verb = "agreement"});
  constexpr int nobody = std::numeric_limits<int>::max();
  const int first = all_reduce(comm, mine.failed ? number_of(comm.rank(), mine.is_usage) : nobody, MPI_MIN);
  if (first == nobody) return;
  const int culprit = first / 2;
  const Problem problem = {.what = broadcast(comm, std::string_view(mine.problem), culprit)};
  const auto where =
      culprit == comm.rank() ? mine.where.value_or(std::source_location::current()) : std::source_location::current();
  if (first % 2 == 1) throw UsageError(problem, where).on_rank(comm.family_rank(culprit));
  throw Error(problem, where).on_rank(comm.family_rank(culprit));
}

bool equal_on_all(const Communicator& comm, std::uint64_t value) {
  const CollectiveScope here(comm, {.verb = "comparison", .bytes = sizeof value});
  // min(x) and min(~x) = ~max(x) in one reduction.
  std::array<std::uint64_t, 2> bounds = {value, ~value};
  check(MPI_Allreduce(MPI_IN_PLACE, bounds.data(), 2, MPI_UINT64_T, MPI_MIN, comm.get()), "MPI_Allreduce");
  return bounds[0] == ~bounds[1];
}

void same_on_all(const Communicator& comm, std::string_view value, std::string_view name) {
  if (equal_on_all(comm, core::hash(value))) return;

  const auto values = all_gather(comm, value);
  std::string subject(name);
  if (subject.starts_with("the ")) subject.front() = 'T';  // the start of a sentence; names of settings stay
  for (int rank = 1; rank < comm.size(); ++rank) {
    const auto& other = values[static_cast<std::size_t>(rank)];
    if (other != values[0]) {
      throw Error(
          {.what = text::concat(subject, " differs between ranks: rank ", comm.family_rank(0), " has ",
                                text::quote(values[0]), ", rank ", comm.family_rank(rank), " has ", text::quote(other)),
           .why = "all ranks must do the same",
           .hint = "start every rank from the same program with the same settings"})
          .on_rank(comm.family_rank(rank));
    }
  }
}

}  // namespace hortator::mpi
