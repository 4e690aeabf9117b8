#include "accelerator/project.hpp"

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

std::optional<fs::path> Project::latest_checkpoint() const {
  if (!automatic_naming_)
    return checkpoint::exists(dir_ / "checkpoint") ? std::optional(dir_ / "checkpoint") : std::nullopt;
  std::optional<fs::path> latest;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(dir_ / "checkpoints", none)) {
    const auto number = checkpoint_number(entry.path());
    if (!number || !checkpoint::exists(entry.path())) continue;
    if (!latest || *number > *checkpoint_number(*latest)) latest = entry.path();
  }
  return latest;
}

}  // namespace hortator::accelerator
