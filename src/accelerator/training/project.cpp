#include "accelerator/training/project.hpp"

#include <algorithm>
#include <hortator/error.hpp>

#include "checkpoint/read/reader.hpp"
#include "checkpoint/write/removal.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"
#include "runtime/identity/run_folder.hpp"

namespace hortator::accelerator {

namespace fs = std::filesystem;

namespace {

fs::path numbered(const fs::path& dir, std::int64_t number) {
  return dir / "checkpoints" / text::concat("checkpoint_", number);
}

checkpoint::Retention checked_retention(const ProjectOptions& options) {
  const checkpoint::Retention retention{.total_limit = options.total_limit, .keep_every = options.keep_every};
  checkpoint::check(retention);
  if (options.iteration < 0) {
    throw UsageError({.what = text::concat("project.iteration is ", options.iteration),
                      .why = "it is the number of the first checkpoint",
                      .hint = "use 0 or more"});
  }
  if (!options.automatic_checkpoint_naming && (options.total_limit || options.keep_every || options.iteration != 0)) {
    throw UsageError({.what = "project.total_limit, keep_every or iteration without automatic_checkpoint_naming",
                      .why = "without numbers there is one checkpoint, which each save replaces",
                      .hint = "set project.automatic_checkpoint_naming"});
  }
  return retention;
}

}  // namespace

std::optional<std::int64_t> checkpoint_number(const fs::path& folder) {
  constexpr std::string_view stem = "checkpoint_";
  const std::string name = folder.filename();
  long long number = 0;
  if (!name.starts_with(stem) || !text::parse_integer(std::string_view(name).substr(stem.size()), number) || number < 0)
    return {};
  return number;
}

Project::Project(const ProjectOptions& options)
    : dir_(options.dir.empty() ? runtime::current_run().folder : options.dir),
      automatic_naming_(options.automatic_checkpoint_naming),
      retention_(checked_retention(options)),
      iteration_(options.iteration) {}

fs::path Project::next_checkpoint() const {
  return automatic_naming_ ? numbered(dir_, iteration_) : dir_ / "checkpoint";
}

Project::Numbers Project::numbers() const {
  Numbers all;
  const auto folder = dir_ / "checkpoints";
  std::error_code problem;
  for (fs::directory_iterator entry(folder, problem), end; !problem && entry != end; entry.increment(problem)) {
    const auto name = entry->path().filename().string();
    // A save that was killed leaves no checkpoint: the next one takes its number and removes it.
    if (name.find(".new-") != std::string::npos) continue;
    // One that was moved aside is still called "checkpoint_<number>.old-<id>".
    if (const auto number = checkpoint_number(text::split(name, '.').front())) all.insert(*number);
  }
  // A folder that cannot be listed may hold checkpoints: a run that took it for empty would replace them.
  if (problem && problem != std::errc::no_such_file_or_directory)
    formats::throw_system_error(text::concat("list the checkpoints in ", folder), problem.value());
  return all;
}

std::int64_t Project::first_free_iteration() const {
  const auto taken = automatic_naming_ ? numbers() : Numbers();
  return taken.empty() ? iteration_ : std::max(iteration_, *taken.begin() + 1);
}

void Project::remove_surplus() const {
  checkpoint::remove_leftovers(dir_ / "checkpoints");
  std::vector<std::int64_t> durable;
  for (const auto number : numbers()) {
    const auto folder = numbered(dir_, number);
    if (checkpoint::exists(folder) && !damaged_.contains(folder)) durable.push_back(number);
  }
  for (const auto number : checkpoint::surplus(durable, retention_)) checkpoint::remove(numbered(dir_, number));
}

void Project::prune() const noexcept {
  if (!automatic_naming_ || !retention_.total_limit) return;
  try {
    remove_surplus();
  } catch (const std::exception& error) {
    log::warn("older checkpoints could not be removed: ", error.what());
  }
}

std::vector<fs::path> Project::checkpoints() const {
  std::vector<fs::path> names;
  if (!automatic_naming_) names.push_back(dir_ / "checkpoint");
  for (const auto number : automatic_naming_ ? numbers() : Numbers()) names.push_back(numbered(dir_, number));
  std::vector<fs::path> all;
  for (const auto& name : names) {
    for (auto& one : checkpoint::candidates(name)) {
      if (checkpoint::has_any_file(one)) all.push_back(std::move(one));
    }
  }
  return all;
}

}  // namespace hortator::accelerator
