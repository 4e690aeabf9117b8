#include "simulation/border/guarded.hpp"

#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "mpi/environment.hpp"
#include "runtime/ending/failure.hpp"

namespace hortator::simulation {
namespace {

std::string& last_error() {
  static thread_local std::string text;
  return text;
}

}  // namespace

void store_error(const std::string& text) noexcept {
  try {
    last_error() = text;
  } catch (...) {
    last_error().clear();  // no memory for the text
  }
}

void require_mpi() {
  if (mpi::is_usable()) return;
  throw UsageError({.what = "A function that communicates was called without MPI",
                    .why = "MPI was finalised, or has not started",
                    .hint = "call it before MPI_Finalize, and hortator_begin before any other function"});
}

hortator_status status_of_exception() noexcept {
  constexpr int usage_exit_code = 2;
  try {
    const auto failure = runtime::describe(std::current_exception());
    store_error(failure.rank ? text::concat("rank ", *failure.rank, ": ", failure.problem) : failure.problem);
    return failure.exit_code == usage_exit_code ? HORTATOR_USAGE : HORTATOR_FAILED;
  } catch (...) {
    store_error("");
    return HORTATOR_FAILED;
  }
}

}  // namespace hortator::simulation

const char* hortator_last_error(void) { return hortator::simulation::last_error().c_str(); }

int32_t hortator_version(void) { return HORTATOR_VERSION_NUMBER; }

hortator_status hortator_report(hortator_status status, const char* text) {
  hortator::simulation::store_error(text == nullptr ? "" : text);
  return status;
}

void hortator_print_failure(void) {
  try {
    hortator::runtime::report_before_exit({.problem = hortator::simulation::last_error()});
  } catch (...) {  // no memory for the text: the program ends in any case
  }
}
