#include "runtime/identity/outcome.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <hortator/version.hpp>
#include <nlohmann/json.hpp>

#include "core/environment/environment.hpp"
#include "core/log.hpp"
#include "core/text/json.hpp"
#include "core/text/text.hpp"
#include "core/whole_file.hpp"

namespace hortator::runtime {
namespace {

namespace fs = std::filesystem;

std::atomic<bool> stopped = false;

constexpr auto file_name = "outcome.json";

/// What rank 0 knows of the run before it and of its own work.
struct Course {
  fs::path finished_folder;  ///< of an earlier run that had finished there
  std::optional<std::int64_t> resumed_after;
  std::int64_t made = 0;
  Energy energy;  ///< of this rank
};

Course& course() {
  static Course instance;
  return instance;
}

std::optional<std::int64_t> already_finished(const Run& run) {
  const bool is_rerun = !was_stopped() && course().made == 0 && course().finished_folder == run.folder;
  return is_rerun ? course().resumed_after : std::nullopt;
}

std::string remark(std::int64_t step) {
  return text::concat("already finished at step ", step, ": no update was left to do");
}

}  // namespace

void note_stopped() { stopped = true; }
bool was_stopped() { return stopped; }

int exit_code_of_stop() {
  const auto asked = core::number(core::process_variables(), "HORTATOR_STOPPED_CODE");
  return asked && publish_that_it_has_stopped() ? *asked : stopped_exit_code;
}

void note_updates(std::optional<std::int64_t> resumed_after, std::int64_t made) {
  course().resumed_after = resumed_after;
  course().made += made;
}

void note_energy(const Energy& energy) {
  auto& all = course().energy;
  all.joules += energy.joules;
  all.samples = std::max(all.samples, energy.samples);
  if (all.source.empty()) all.source = energy.source;
}

Energy noted_energy() { return course().energy; }

std::string outcome_record(const Run& run, bool stopped, std::optional<std::int64_t> already_finished,
                           const Energy& energy) {
  nlohmann::ordered_json record = {{"run_id", run.id},
                                   {"outcome", stopped ? "stopped" : "finished"},
                                   {"exit_code", stopped ? stopped_exit_code : EXIT_SUCCESS},
                                   {"world_size", run.world_size},
                                   {"hortator", HORTATOR_VERSION}};
  if (!energy.source.empty()) {
    constexpr double joules_of_kwh = 3.6e6;
    record["energy"] = {{"joules", energy.joules}, {"kwh", energy.joules / joules_of_kwh}, {"source", energy.source}};
    if (energy.samples > 0) {
      record["energy"]["samples"] = energy.samples;
      record["energy"]["joules_per_sample"] = energy.joules / static_cast<double>(energy.samples);
    }
  }
  if (already_finished) record["remark"] = remark(*already_finished);
  return record.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void write_outcome(double joules) {
  const auto run = current_run();
  if (run.rank != 0 || run.is_question) return;
  const auto path = run.folder / file_name;
  const auto aside = run.folder / (".outcome-" + run.id);
  const auto finished = already_finished(run);
  auto energy = noted_energy();
  energy.joules = joules;
  if (finished) log::info(remark(*finished));
  if (!core::write_whole(path, aside, outcome_record(run, was_stopped(), finished, energy) + '\n'))
    log::warn("Could not write ", path.string());
}

void remove_stale_outcome(const fs::path& folder) {
  const auto record = core::parse_record(core::read_whole(folder / file_name).value_or(""));
  if (record.is_object() && record.contains("outcome") && record["outcome"] == "finished")
    course().finished_folder = folder;
  std::error_code none;
  fs::remove(folder / file_name, none);
}

}  // namespace hortator::runtime
