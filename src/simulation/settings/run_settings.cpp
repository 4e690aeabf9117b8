#include "simulation/settings/run_settings.hpp"

#include <filesystem>
#include <hortator/parallel/zero.hpp>

#include "core/text/text.hpp"
#include "core/whole_file.hpp"
#include "launch/settings/keys.hpp"
#include "launch/settings/simulation_sections.hpp"

namespace hortator::simulation {
namespace {

void read_launch_keys(const Section& file, const std::string& asked_folder, AcceleratorOptions& options) {
  if (file.has("mixed_precision")) {
    const auto precision = file.choice("mixed_precision", {"no", "bf16", "fp16"}, "no");
    options.mixed_precision = precision == "bf16"   ? Precision::bf16
                              : precision == "fp16" ? Precision::fp16
                                                    : Precision::no;
  }
  if (file.has("zero_stage")) options.zero = zero_config(file.text("zero_stage"));
  options.gradient_accumulation_steps = file.integer("gradient_accumulation_steps", 1, 1);
  options.cpu = file.flag("cpu", false);
  const auto own_folder = text::concat("runs/", std::filesystem::path(file.file()).stem().string());
  options.project.dir = file.text("run_dir", asked_folder.empty() ? own_folder : asked_folder);
  for (const auto& key : launching::keys()) file.ignore({std::string(key.name)});
}

void read_checkpoints(const Section& section, RunSettings& settings) {
  auto& options = settings.options;
  options.checkpoint.asynchronous = section.flag("asynchronous", false);
  const auto writer = section.choice("writer", {"direct", "mpio"}, "direct");
  options.checkpoint.writer = writer == "mpio" ? CheckpointWriter::mpio : CheckpointWriter::direct;
  if (section.has("keep")) {
    options.project.automatic_checkpoint_naming = true;
    options.project.total_limit = section.integer("keep", 1);
  }
  settings.resumes_partly = section.choice("resume", {"whole", "partly"}, "whole") == "partly";
  section.finish();
}

// Updates with a gradient that is not finite are left out by skip and by fail; the model reports them as is asked for.
void read_protection(const Section& file, RunSettings& settings) {
  const auto asked = file.choice("on_nonfinite", {"skip", "fail", "proceed"}, "skip");
  settings.on_nonfinite = asked == "fail"      ? NonfiniteStep::fail
                          : asked == "proceed" ? NonfiniteStep::proceed
                                               : NonfiniteStep::skip;
  if (settings.on_nonfinite == NonfiniteStep::proceed) return;
  settings.options.protection.on_nonfinite = OnNonfinite::skip;
  settings.options.protection.max_skips_in_a_row = 0;
}

void read_threads(const Section& file, RunSettings& settings) {
  if (!file.has("model_threads")) return;
  constexpr std::int64_t max_threads = 4096;
  const auto threads = file.integer("model_threads", 1);
  if (threads > max_threads)
    throw file.error("model_threads", text::concat("expected a number up to ", max_threads, ", got ", threads));
  settings.model_threads = static_cast<int>(threads);
}

Section entry_of(const SettingNode& map, const std::string& file, const std::string& kind, const std::string& name) {
  const Section section(map, file, kind);
  const auto names = section.names();
  if (auto found = section.section(name)) return std::move(*found);
  throw UsageError({.what = text::concat(file, ": ", kind, " has no entry ", text::quote(name)),
                    .hint = names.empty() ? text::concat("add one: ", kind, ": {", name, ": {...}}")
                                          : text::suggestion(name, names)});
}

}  // namespace

Section RunSettings::model(const std::string& name) const { return entry_of(models, file, "models", name); }

Section RunSettings::buffer(const std::string& name) const { return entry_of(buffers, file, "buffers", name); }

std::string read_settings_file(const std::string& file) {
  constexpr std::uint64_t max_bytes = std::uint64_t{1} << 20;
  if (auto content = core::read_at_most(file, max_bytes)) return std::move(*content);
  throw UsageError({.what = text::concat("The settings ", text::quote(file), " cannot be read"),
                    .why = text::concat("the file is missing, or larger than ", max_bytes, " bytes"),
                    .hint = "pass the name of a YAML file; rank 0 reads it for all"});
}

RunSettings read_run_settings(const SettingNode& root, const std::string& file, const std::string& asked_folder) {
  const Section whole(root, file, "");
  RunSettings settings{.file = file};
  read_launch_keys(whole, asked_folder, settings.options);
  settings.options.schedule_step = ScheduleStep::per_update;  // the caller's steps are the run's
  settings.options.ddp.find_unused_parameters = whole.flag("find_unused_parameters", false);
  if (const auto section = whole.section("checkpoints")) read_checkpoints(*section, settings);
  read_protection(whole, settings);
  read_threads(whole, settings);
  const auto trackers = whole.texts("trackers", {"jsonl"});
  settings.options.log_with.clear();
  for (const auto& tracker : trackers) settings.options.log_with.emplace_back(tracker);
  settings.seed = static_cast<std::uint64_t>(whole.integer("seed", 0, 0));
  for (const auto& [name, node] : root.entries) {
    if (name == "models") settings.models = node;
    if (name == "buffers") settings.buffers = node;
  }
  for (const auto& name : launching::simulation_sections) whole.ignore({std::string(name)});
  whole.finish();
  // A file with a list where a map belongs is an error now, not when the first model is made.
  [[maybe_unused]] const Section models(settings.models, file, "models");
  [[maybe_unused]] const Section buffers(settings.buffers, file, "buffers");
  return settings;
}

}  // namespace hortator::simulation
