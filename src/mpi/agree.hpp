#pragma once

#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <hortator/error.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "mpi/communicator.hpp"

/// Agreement on failure: after an error on one rank all ranks throw, so that none waits for another.
namespace hortator::mpi {

/// A rank's contribution to an agreement: success, or its problem.
struct LocalOutcome {
  bool failed = false;
  std::string problem;
  bool is_usage = false;                           ///< from a UsageError: the same settings fail again
  std::optional<std::source_location> where = {};  ///< in the code

  static LocalOutcome of(const std::exception& error);
};

/// Returns when no rank has failed. Otherwise every rank throws the problem of the lowest failing rank and names that
/// rank (Communicator::family_rank): as a UsageError where it was one there, else as an Error. @collective
void agree(const Communicator& comm, const LocalOutcome& mine);

/// The same, and throws as same_on_all() unless `value` is the same on all ranks. One reduction of 24 bytes where it is
/// and no rank has failed. @collective
void agree(const Communicator& comm, const LocalOutcome& mine, std::string_view value, std::string_view name);

/// Runs `work`, which may fail on this rank, then agrees: it has succeeded on all ranks, or all throw the same error.
/// @collective
template <std::invocable Work>
void all_or_none(const Communicator& comm, Work&& work) {
  LocalOutcome verdict;
  try {
    work();
  } catch (const std::exception& error) {
    verdict = LocalOutcome::of(error);
  }
  agree(comm, verdict);
}

/// The same for work that returns a text, which must be the same on all ranks: otherwise all throw as same_on_all().
/// Costs no more than an agreement where it is. @collective
template <typename Work>
requires std::convertible_to<std::invoke_result_t<Work>, std::string>
void all_or_none_alike(const Communicator& comm, std::string_view name, Work&& work) {
  LocalOutcome verdict;
  std::string value;
  try {
    value = work();
  } catch (const std::exception& error) {
    verdict = LocalOutcome::of(error);
  }
  agree(comm, verdict, value, name);
}

/// Whether `value` is the same on all ranks. One reduction of 16 bytes. @collective
bool equal_on_all(const Communicator& comm, std::uint64_t value);

/// Throws on all ranks unless `value` is the same everywhere. The error contains `name`, which describes the value, and
/// a rank that differs from rank 0. One reduction of 16 bytes where all are equal. @collective
void same_on_all(const Communicator& comm, std::string_view value, std::string_view name);

/// Runs work that may fail on a single rank; all ranks then throw. See all_or_none() in agree.hpp.
using AllOrNone = std::function<void(const std::function<void()>& work)>;

}  // namespace hortator::mpi
