#pragma once

#include <exception>
#include <hortator/error.hpp>
#include <source_location>
#include <string_view>

#include "core/text/text.hpp"

namespace hortator::comm {

/// Thrown when another rank has left a collective in the middle.
class Abandoned : public Error {
 public:
  using Error::Error;

  Abandoned& on_rank(int rank) noexcept {  // hides the base's, so that the thrown object keeps its type
    Error::on_rank(rank);
    return *this;
  }
};

/// The error for a collective that `rank` has left for `reason`.
inline Abandoned abandoned_by(int rank, std::string_view reason,
                              std::source_location where = std::source_location::current()) {
  return Abandoned({.what = text::concat("Rank ", rank, " has left a collective: ", reason),
                    .why = "the others would wait for it for ever",
                    .hint = "its own message says what went wrong"},
                   where)
      .on_rank(rank);
}

/// Whether `thrown` is an Abandoned or an error that repeats the message of one.
inline bool is_abandoned(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Abandoned&) {
    return true;
  } catch (const std::exception& error) {
    return std::string_view(error.what()).find(" has left a collective: ") != std::string_view::npos;
  } catch (...) {
    return false;
  }
}

}  // namespace hortator::comm
