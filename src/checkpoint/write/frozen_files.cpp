#include "checkpoint/write/frozen_files.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include "checkpoint/format.hpp"
#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"

namespace hortator::checkpoint {
namespace {

namespace fs = std::filesystem;

// Frozen files follow the others.
std::size_t first_frozen(const Manifest& manifest) {
  const auto first =
      std::ranges::find_if(manifest.files, [](const Manifest::File& file) { return is_frozen_file(file.name); });
  return static_cast<std::size_t>(first - manifest.files.begin());
}

void link(const fs::path& from, std::int64_t bytes, const fs::path& to) {
  std::error_code error;
  const auto found = fs::file_size(from, error);
  if (!error && std::cmp_not_equal(found, bytes))
    throw formats::FileError({.what = text::concat(from, " has ", found, " bytes, expected ", bytes)});
  if (!error) fs::create_hard_link(from, to, error);
  if (error) formats::throw_system_error(text::concat("link ", to, " to ", from), error.value());
}

}  // namespace

std::vector<std::string> FrozenFiles::names() const {
  std::vector<std::string> all;
  for (const auto& file : files) all.push_back(file.name);
  return all;
}

std::optional<FrozenFiles> frozen_files_of(const fs::path& folder, const Manifest& manifest) {
  const auto first = first_frozen(manifest);
  if (first == manifest.files.size()) return {};
  FrozenFiles frozen{.folder = folder,
                     .files = {manifest.files.begin() + static_cast<std::ptrdiff_t>(first), manifest.files.end()}};
  for (const auto& [name, dataset] : manifest.datasets) {
    if (dataset.pieces.empty() || dataset.pieces.front().file < first) continue;
    auto& copy = frozen.datasets.emplace(name, dataset).first->second;
    for (auto& piece : copy.pieces) piece.file -= first;
  }
  return frozen;
}

void add(Manifest& manifest, const FrozenFiles& frozen) {
  const auto first = manifest.files.size();
  manifest.files.insert(manifest.files.end(), frozen.files.begin(), frozen.files.end());
  for (const auto& [name, dataset] : frozen.datasets) {
    auto& copy = manifest.datasets.emplace(name, dataset).first->second;
    for (auto& piece : copy.pieces) piece.file += first;
  }
}

void link_files(const FrozenFiles& frozen, const fs::path& to) {
  try {
    for (const auto& file : frozen.files) link(frozen.folder / file.name, file.bytes, to / file.name);
  } catch (...) {
    std::error_code ignored;
    for (const auto& file : frozen.files) fs::remove(to / file.name, ignored);
    throw;
  }
}

}  // namespace hortator::checkpoint
