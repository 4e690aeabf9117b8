#include "checkpoint/write/removal.hpp"

#include <ranges>

#include "checkpoint/format.hpp"
#include "checkpoint/read/reader.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"

namespace hortator::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view mark = ".gone-";

void empty_and_remove(const fs::path& folder) {
  if (formats::remove_folder(folder, ownership())) return;
  log::warn(folder.string(),
            " could not be removed, or holds files that are not part of the checkpoint; it is no longer needed");
}

}  // namespace

formats::Ownership ownership() { return {.is_ours = is_our_file, .seal = manifest_file, .tree = hooks_folder}; }

void remove(const fs::path& folder) {
  if (!checkpoint::exists(folder)) {
    throw formats::FileError({.what = text::concat(folder, " is not a checkpoint"),
                              .why = "only checkpoints are removed",
                              .hint = "remove it by hand if it is not needed"});
  }
  // The newest is removed last: until then readers find it.
  const auto found = candidates(folder);
  for (const auto& one : std::ranges::reverse_view(found)) {
    const auto aside = fs::path(one) += text::concat(mark, formats::replacement_id());
    std::error_code problem;
    fs::rename(one, aside, problem);
    if (problem) return log::warn(one.string(), " could not be removed: ", problem.message());
    empty_and_remove(aside);
  }
}

formats::Ownership ownership_of_replaced(bool is_damaged) {
  auto what = ownership();
  what.is_damaged = [is_damaged](const fs::path& folder) {
    return has_any_file(folder) && (is_damaged || !is_whole(folder));
  };
  return what;
}

void remove_leftovers(const fs::path& parent, Leftovers which) {
  // A user's own folder "checkpoint_3.gone-wrong" does not end in an id and is kept.
  const auto ends_in = [](std::string_view name, std::string_view suffix) {
    const auto begin = name.rfind(suffix);
    return begin != std::string_view::npos && formats::is_replacement_id(name.substr(begin + suffix.size()));
  };
  const auto is_one = [&](const std::string& name) {
    if (!name.starts_with("checkpoint")) return false;
    return ends_in(name, mark) || (which == Leftovers::also_of_saves && ends_in(name, ".new-"));
  };
  std::vector<fs::path> found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(parent, none)) {
    if (is_one(entry.path().filename().string())) found.push_back(entry.path());
  }
  for (const auto& folder : found) formats::remove_folder(folder, ownership());
}

}  // namespace hortator::checkpoint
