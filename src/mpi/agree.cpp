#include "mpi/agree.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "core/hash.hpp"
#include "core/text/text.hpp"
#include "mpi/collectives.hpp"

namespace hortator::mpi {
namespace {

// Two numbers for each rank, so that one reduction yields both the rank and the type of error.
int number_of(int rank, bool is_usage) { return 2 * rank + (is_usage ? 1 : 0); }

constexpr int nobody = std::numeric_limits<int>::max();

// Throws the problem of a rank on all. @collective
[[noreturn]] void throw_problem(const Communicator& comm, const LocalOutcome& mine, int number) {
  const int culprit = number / 2;
  const Problem problem = {.what = broadcast(comm, std::string_view(mine.problem), culprit)};
  const auto where =
      culprit == comm.rank() ? mine.where.value_or(std::source_location::current()) : std::source_location::current();
  if (number % 2 == 1) throw UsageError(problem, where).on_rank(comm.family_rank(culprit));
  throw Error(problem, where).on_rank(comm.family_rank(culprit));
}

// The caller knows that the ranks' values are not all equal. @collective
[[noreturn]] void throw_different(const Communicator& comm, std::string_view value, std::string_view name) {
  const auto values = all_gather(comm, value);
  std::string subject(name);
  if (subject.starts_with("the ")) subject.front() = 'T';  // the start of a sentence; names of settings stay
  const auto other = std::ranges::find_if(values, [&](const std::string& one) { return one != values[0]; });
  const auto rank = comm.family_rank(static_cast<int>(other - values.begin()));
  throw Error({.what = text::concat(subject, " differs between ranks: rank ", comm.family_rank(0), " has ",
                                    text::quote(values[0]), ", rank ", rank, " has ", text::quote(*other)),
               .why = "all ranks must do the same",
               .hint = "start every rank from the same program with the same settings"})
      .on_rank(rank);
}

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
  const int first = all_reduce(comm, mine.failed ? number_of(comm.rank(), mine.is_usage) : nobody, Op::min);
  if (first != nobody) throw_problem(comm, mine, first);
}

void agree(const Communicator& comm, const LocalOutcome& mine, std::string_view value, std::string_view name) {
  const CollectiveScope here(comm, {.verb = "agreement on a value"});
  const auto hash = core::hash(value);
  const auto number = static_cast<std::uint64_t>(mine.failed ? number_of(comm.rank(), mine.is_usage) : nobody);
  std::array<std::uint64_t, 3> bounds = {number, hash, ~hash};
  all_reduce_numbers(comm, bounds.data(), bounds.size(), NumberType::uint64, Op::min);
  const int first = static_cast<int>(bounds[0]);
  if (first != nobody) throw_problem(comm, mine, first);
  if (bounds[1] != ~bounds[2]) throw_different(comm, value, name);
}

bool equal_on_all(const Communicator& comm, std::uint64_t value) {
  const CollectiveScope here(comm, {.verb = "comparison", .bytes = sizeof value});
  // min(x) and min(~x) = ~max(x) in one reduction.
  std::array<std::uint64_t, 2> bounds = {value, ~value};
  all_reduce_numbers(comm, bounds.data(), bounds.size(), NumberType::uint64, Op::min);
  return bounds[0] == ~bounds[1];
}

void same_on_all(const Communicator& comm, std::string_view value, std::string_view name) {
  if (!equal_on_all(comm, core::hash(value))) throw_different(comm, value, name);
}

}  // namespace hortator::mpi
