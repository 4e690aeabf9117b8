#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/identity/run_folder.hpp"

/// The outcome of a run that has not failed.
namespace hortator::runtime {

/// hortator::run returns it after should_stop() was true: the run can be resumed. EX_TEMPFAIL of sysexits.h.
constexpr int stopped_exit_code = 75;

/// Records that the program has been asked to stop and can be resumed in another job.
void note_stopped();
bool was_stopped();
/// The code with which a rank of a stopped run exits: stopped_exit_code. A launcher that reads from the run's note that
/// it has stopped asks for another one in HORTATOR_STOPPED_CODE: mpirun waits for seconds after any code but 0.
int exit_code_of_stop();

/// Records at the end of a run's work how many updates it made, and after which one it had resumed, if it had.
void note_updates(std::optional<std::int64_t> resumed_after, std::int64_t made);

/// The energy of a run, for outcome.json.
struct Energy {
  double joules = 0;
  std::int64_t samples = 0;  ///< 0: unknown
  std::string source = {};   ///< empty: nothing was measured
};
/// Adds what this rank has measured: its device, and on the first rank of a node the node.
void note_energy(const Energy& energy);
/// What this rank has noted.
Energy noted_energy();

/// The content of outcome.json. `already_finished`: the update at which an earlier run had finished, if this one has
/// resumed there and had none left to do.
std::string outcome_record(const Run& run, bool stopped, std::optional<std::int64_t> already_finished = {},
                           const Energy& energy = {});

/// Writes outcome.json to the run folder and replaces that of an earlier run. If it cannot be written, it logs a
/// warning: the run itself has succeeded. `joules`: the sum of noted_energy() over the ranks.
void write_outcome(double joules);
/// Removes the outcome of an earlier run, and remembers whether it had finished. Called when a run begins.
void remove_stale_outcome(const std::filesystem::path& folder);

}  // namespace hortator::runtime
