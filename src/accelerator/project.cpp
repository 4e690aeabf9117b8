#include "accelerator/project.hpp"

#include <algorithm>
#include <hortator/error.hpp>

#include "base/text.hpp"
#include "checkpoint/reader.hpp"
#include "checkpoint/removal.hpp"
#include "runtime/run_folder.hpp"

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

std::vector<std::int64_t> Project::numbers() const {
  std::vector<std::int64_t> all;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(dir_ / "checkpoints", none)) {
    const auto number = checkpoint_number(entry.path());
    if (number && checkpoint::exists(entry.path())) all.push_back(*number);
  }
  return all;
}

std::optional<fs::path> Project::latest_checkpoint() const {
  if (!automatic_naming_)
    return checkpoint::exists(dir_ / "checkpoint") ? std::optional(dir_ / "checkpoint") : std::nullopt;
  const auto all = numbers();
  return all.empty() ? std::nullopt : std::optional(numbered(dir_, *std::max_element(all.begin(), all.end())));
}

std::int64_t Project::first_free_iteration() const {
  auto first = iteration_;
  if (automatic_naming_) {
    for (const auto number : numbers()) first = std::max(first, number + 1);
  }
  return first;
}

void Project::saved_one(bool is_main) {
  ++iteration_;
  if (is_main && automatic_naming_) prune();
}

void Project::prune() const {
  if (!retention_.total_limit) return;
  checkpoint::remove_leftovers(dir_ / "checkpoints");
  for (const auto number : checkpoint::surplus(numbers(), retention_)) checkpoint::remove(numbered(dir_, number));
}

}  // namespace hortator::accelerator
