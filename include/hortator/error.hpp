#pragma once

#include <hortator/export.hpp>
#include <optional>
#include <source_location>
#include <stdexcept>
#include <string>

namespace hortator {

/// What went wrong, why it matters and what to do: an error is read by somebody whose job has just ended.
struct Problem {
  std::string what;       ///< the thing, by name, and what is wrong with it
  std::string why = "";   ///< why that matters
  std::string hint = "";  ///< what to do now
};

/// "what (why). hint", in lower case, with the place in the source that found it.
std::string HORTATOR_API to_string(const Problem& problem);

/// What the library throws: what is wrong, why that matters, and what helps. See UsageError for wrong uses of it.
class HORTATOR_API Error : public std::runtime_error {
 public:
  explicit Error(const Problem& problem, std::source_location where = std::source_location::current());

  const std::source_location& where() const noexcept { return where_; }

  /// Set when all ranks throw the same error together: the rank whose problem it is. Empty: only this rank knows of it.
  std::optional<int> rank() const noexcept { return rank_; }
  Error& on_rank(int rank) noexcept;

 private:
  std::source_location where_;
  std::optional<int> rank_;
};

/// The user asked for something that does not exist or does not fit: options, arguments, call order.
class HORTATOR_API UsageError : public Error {
 public:
  using Error::Error;

  UsageError& on_rank(int rank) noexcept {  // so that what is thrown keeps its type
    Error::on_rank(rank);
    return *this;
  }
};

}  // namespace hortator
