#include "accelerator/project.hpp"

#include <algorithm>
#include <functional>
#include <set>

#include "base/text.hpp"
#include "checkpoint/reader.hpp"
#include "runtime/run_folder.hpp"

namespace hortator::accelerator {

namespace fs = std::filesystem;

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
      automatic_naming_(options.automatic_checkpoint_naming) {}

fs::path Project::next_checkpoint() const {
  if (!automatic_naming_) return dir_ / "checkpoint";
  return dir_ / "checkpoints" / text::concat("checkpoint_", iteration_);
}

std::vector<fs::path> Project::checkpoints() const {
  if (!automatic_naming_) return checkpoint::candidates(dir_ / "checkpoint");
  std::set<std::int64_t, std::greater<>> numbers;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(dir_ / "checkpoints", none)) {
    // One that was moved aside is still called "checkpoint_<number>.old-<id>".
    if (const auto number = checkpoint_number(text::split(entry.path().filename().string(), '.').front()))
      numbers.insert(*number);
  }
  std::vector<fs::path> all;
  for (const auto number : numbers) {
    for (auto& one : checkpoint::candidates(dir_ / "checkpoints" / text::concat("checkpoint_", number)))
      all.push_back(std::move(one));
  }
  return all;
}

bool Project::has_checkpoint() const {
  const auto all = checkpoints();
  return std::any_of(all.begin(), all.end(), [](const fs::path& folder) { return checkpoint::exists(folder); });
}

}  // namespace hortator::accelerator
