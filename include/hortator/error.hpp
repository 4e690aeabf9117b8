#pragma once

#include <hortator/export.hpp>
#include <optional>
#include <source_location>
#include <stdexcept>
#include <string>

namespace hortator {

/// What went wrong, why it matters and what to do. The reader's job has just ended: be specific.
struct Problem {
  std::string what;       ///< begins with a capital; names the thing, and its value in quotes
  std::string why = "";   ///< why that matters
  std::string hint = "";  ///< what to do now
};

/// Returns "what (why); hint". Empty parts are left out.
std::string HORTATOR_API to_string(const Problem& problem);

/// The exception that the library throws. It says what is wrong, why that matters and what to do.
class HORTATOR_API Error : public std::runtime_error {
 public:
  explicit Error(const Problem& problem, std::source_location where = std::source_location::current());

  const std::source_location& where() const noexcept { return where_; }  ///< the source line that found the problem

  /// The rank whose problem it is, if all ranks throw the same error together; empty if only this rank throws. The line
  /// that hortator::run prints begins with it, so what() does not repeat it.
  std::optional<int> rank() const noexcept { return rank_; }
  Error& on_rank(int rank) noexcept;

 private:
  std::source_location where_;
  std::optional<int> rank_;
};

/// A wrong use of the library: options, arguments or an order of calls that cannot work. hortator::run exits with 2.
class HORTATOR_API UsageError : public Error {
 public:
  using Error::Error;

  UsageError& on_rank(int rank) noexcept {  // so that what is thrown keeps its type
    Error::on_rank(rank);
    return *this;
  }
};

}  // namespace hortator
