#include <hortator/error.hpp>

#include "mpi/environment.hpp"
#include "simulation/border/arguments.hpp"
#include "simulation/border/guarded.hpp"

using namespace hortator::simulation;

hortator_status hortator_begin(int32_t comm, const char* settings, hortator_run** run) {
  return guarded([&] {
    require_place(run, "run");
    *run = nullptr;
    *run = Run::begin(comm, settings).release()->handle();
    return HORTATOR_OK;
  });
}

// Without MPI the run's destructor would end the program.
hortator_status hortator_end(hortator_run* run, int32_t* exit_code) {
  return guarded([&] {
    std::unique_ptr<Run> ending(&run_of(run));
    ending->forget_handle();
    if (!hortator::mpi::is_usable()) {
      [[maybe_unused]] const auto* const left_behind = ending.release();
      throw hortator::UsageError({.what = "hortator_end was called after MPI_Finalize",
                                  .why = "the ranks can no longer complete the run's last save together",
                                  .hint = "call hortator_end first, then MPI_Finalize"});
    }
    const int code = ending->end();
    if (exit_code != nullptr) *exit_code = code;
    return HORTATOR_OK;
  });
}

hortator_status hortator_should_stop(hortator_run* run, int32_t* stop) {
  return guarded_collective([&] {
    const bool stops = run_of(run).should_stop();  // first: other ranks take part, whatever this one has given
    require_place(stop, "stop");
    *stop = stops ? 1 : 0;
    return HORTATOR_OK;
  });
}

hortator_status hortator_time_left(hortator_run* run, double* seconds) {
  return guarded_collective([&] {
    const auto left = run_of(run).accelerator().time_left();
    require_place(seconds, "seconds");
    if (left) *seconds = static_cast<double>(left->count());
    return left ? HORTATOR_OK : HORTATOR_NOTHING;
  });
}

hortator_status hortator_keep(hortator_run* run, const char* name, const hortator_array* array,
                              hortator_distribution distribution) {
  return guarded_collective([&] {
    run_of(run).keep(name, array, distribution);
    return HORTATOR_OK;
  });
}

hortator_status hortator_save(hortator_run* run, double every, int32_t* saved) {
  return guarded_collective([&] {
    if (saved != nullptr) *saved = 0;
    const bool has_saved = run_of(run).save(every);
    if (saved != nullptr) *saved = has_saved ? 1 : 0;
    return HORTATOR_OK;
  });
}

hortator_status hortator_resume(hortator_run* run) {
  return guarded_collective(
      [&] { return run_of(run).resume(/*partly=*/false).has_checkpoint ? HORTATOR_OK : HORTATOR_NOTHING; });
}

hortator_status hortator_resume_partly(hortator_run* run, int32_t* left_out) {
  return guarded_collective([&] {
    const auto resumed = run_of(run).resume(/*partly=*/true);
    if (left_out != nullptr) *left_out = static_cast<int32_t>(resumed.left_out);
    return resumed.has_checkpoint ? HORTATOR_OK : HORTATOR_NOTHING;
  });
}

hortator_status hortator_log(hortator_run* run, const char* name, double value) {
  return guarded([&] {
    run_of(run).log({}, text_of(name, "name"), value);
    return HORTATOR_OK;
  });
}

hortator_status hortator_log_step(hortator_run* run, int64_t step, const char* name, double value) {
  return guarded([&] {
    run_of(run).log(step, text_of(name, "name"), value);
    return HORTATOR_OK;
  });
}
