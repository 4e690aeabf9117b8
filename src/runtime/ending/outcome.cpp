#include "runtime/ending/outcome.hpp"

#include <atomic>
#include <cstdlib>
#include <hortator/version.hpp>
#include <nlohmann/json.hpp>

#include "core/log.hpp"
#include "core/whole_file.hpp"

namespace hortator::runtime {
namespace {

namespace fs = std::filesystem;

std::atomic<bool> stopped = false;

constexpr auto file_name = "outcome.json";

}  // namespace

void note_stopped() { stopped = true; }
bool was_stopped() { return stopped; }

std::string outcome_record(const Run& run, bool stopped) {
  const nlohmann::ordered_json record = {{"run_id", run.id},
                                         {"outcome", stopped ? "stopped" : "finished"},
                                         {"exit_code", stopped ? stopped_exit_code : EXIT_SUCCESS},
                                         {"world_size", run.world_size},
                                         {"hortator", HORTATOR_VERSION}};
  return record.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void write_outcome() {
  const auto run = current_run();
  if (run.rank != 0) return;
  const auto path = run.folder / file_name;
  const auto aside = run.folder / (".outcome-" + run.id);
  if (!core::write_whole(path, aside, outcome_record(run, was_stopped()) + '\n'))
    log::warn("Could not write ", path.string());
}

void remove_stale_outcome(const fs::path& folder) {
  std::error_code none;
  fs::remove(folder / file_name, none);
}

}  // namespace hortator::runtime
