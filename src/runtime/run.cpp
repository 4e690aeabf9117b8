#include <cstdlib>
#include <exception>
#include <hortator/error.hpp>
#include <hortator/run.hpp>

#include "mpi/environment.hpp"
#include "runtime/failure.hpp"
#include "runtime/outcome.hpp"
#include "runtime/run_folder.hpp"
#include "runtime/stop_signal.hpp"

namespace hortator {
namespace {

// Exceptions that leave a thread, or a function that must not throw, end here.
[[noreturn]] void on_terminate() {
  const auto thrown = std::current_exception();
  runtime::report(thrown ? runtime::describe(thrown) : runtime::Failure{.problem = "std::terminate was called"});
  mpi::abort_job(EXIT_FAILURE);
}

// 2 is what command lines give for a wrong use.
int exit_code_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const UsageError&) {
    return 2;
  } catch (...) {
    return EXIT_FAILURE;
  }
}

// A rank that has no peers leaves by its own door. Any other ends all: they may wait for this one for ever.
int end_job(const std::exception_ptr& thrown) {
  runtime::report(runtime::describe(thrown));
  const int code = exit_code_of(thrown);
  if (runtime::current_run().world_size > 1) mpi::abort_job(code);
  mpi::finalize_if_ours();
  return code;
}

}  // namespace

int run(int argc, char** argv, const std::function<void()>& body) {
  runtime::survive_minutes_signal();
  std::set_terminate(on_terminate);
  try {
    runtime::begin_run(argc > 0 ? argv[0] : "program");
    body();
    // Behind this point no rank fails any more; and a launcher ends all ranks once the first has left with a code.
    mpi::arrive_at_end();
    runtime::write_outcome();
    mpi::finalize_if_ours();
    return runtime::was_stopped() ? runtime::stopped_exit_code : EXIT_SUCCESS;
  } catch (...) {
    return end_job(std::current_exception());
  }
}

}  // namespace hortator
