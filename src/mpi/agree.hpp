#pragma once

#include <concepts>
#include <cstdint>
#include <exception>
#include <hortator/error.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "mpi/communicator.hpp"

/// How ranks leave a collective path: all together or not at all.
namespace hortator::mpi {

/// What a rank brings to an agreement: nothing, or its problem.
struct Verdict {
  bool failed = false;
  std::string problem;
  bool is_usage = false;                           ///< a UsageError's: the same settings fail again
  std::optional<std::source_location> where = {};  ///< that found it

  static Verdict of(const std::exception& error);
};

/// Returns when no rank failed; otherwise every rank throws the problem of the lowest failing rank, named, as a
/// UsageError where it was one there, else as an Error. @collective
void agree(const Communicator& comm, const Verdict& mine);

/// Runs fallible work of this rank, then agrees: either it worked on all ranks, or all throw the same error.
/// @collective
template <std::invocable Work>
void all_or_none(const Communicator& comm, Work&& work) {
  Verdict verdict;
  try {
    work();
  } catch (const std::exception& error) {
    verdict = Verdict::of(error);
  }
  agree(comm, verdict);
}

/// Is `value` the same on all ranks? @collective One reduction of 16 bytes.
bool equal_on_all(const Communicator& comm, std::uint64_t value);

/// Throws on all ranks, naming a rank that differs from rank 0, unless `value` is the same everywhere. `name` says what
/// it is. @collective Costs one reduction of 16 bytes when all is well.
void same_on_all(const Communicator& comm, std::string_view value, std::string_view name);

}  // namespace hortator::mpi
