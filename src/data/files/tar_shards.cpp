#include <hortator/datasets/tar_shards.hpp>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/text/text.hpp"
#include "data/files/compressed_file.hpp"
#include "data/files/rows.hpp"
#include "data/files/tar_names.hpp"
#include "formats/file/file_error.hpp"
#include "formats/file/file_pool.hpp"
#include "formats/tar/members.hpp"

namespace hortator {

namespace data {
namespace {

using formats::FileError;
using formats::FixedFile;
using formats::TarMember;

formats::FileBytes reader_of(const FixedFile& file) {
  return [&file](std::uint64_t offset, void* to, std::size_t bytes) { file.read_at(offset, to, bytes); };
}

}  // namespace

/// Where the samples of the archives are.
class TarIndex {
 public:
  explicit TarIndex(const std::vector<std::filesystem::path>& archives) {
    if (archives.empty()) throw UsageError({.what = "No tar shards are named", .hint = "name the archives"});
    for (const auto& path : archives) {
      const auto file = files_.get(files_.add(path));
      refuse_compressed(
          *file, "read it in order with TarStream, or unpack it with gunzip or unzstd: images are compressed already");
      try {
        scan(*file);
      } catch (const formats::TarFault& fault) {
        throw_invalid_tar(path, fault);
      }
      file->require_unchanged();
    }
    if (places_.empty())
      throw FileError({.what = text::concat(archives.front(), " has no samples"),
                       .hint = "name archives of files such as 0001.jpg and 0001.cls"});
    places_.shrink_to_fit();
  }

  std::int64_t size() const { return static_cast<std::int64_t>(places_.size()); }
  const std::filesystem::path& archive(std::int64_t sample) const { return files_.path(place_of(sample).archive); }

  TarSample read(std::int64_t sample) const {
    const auto& place = place_of(sample);
    const auto opened = files_.get(place.archive);
    const auto& file = *opened;
    try {
      formats::TarMembers members(reader_of(file), file.bytes(), place.position);
      TarSample found;
      for (std::uint32_t i = 0; i < place.members;) i += add(found, file, members.next()) ? 1 : 0;
      file.require_unchanged();
      return found;
    } catch (const formats::TarFault& fault) {
      throw_invalid_tar(file.path(), fault);
    }
  }

 private:
  struct SamplePlace {
    std::uint64_t position;  ///< of the first header
    std::uint32_t archive;
    std::uint32_t members;  ///< without hidden ones
  };

  const SamplePlace& place_of(std::int64_t sample) const {
    require_samples({&sample, 1}, size(), files_.path(0));
    return places_[static_cast<std::size_t>(sample)];
  }

  void scan(const FixedFile& file) {
    formats::TarMembers members(reader_of(file), file.bytes());
    std::string key;
    std::vector<std::string> extensions;
    const auto archive = static_cast<std::uint32_t>(files_.size() - 1);
    for (auto position = members.position(); const auto member = members.next(); position = members.position()) {
      const auto name = TarName::divide(member->name);
      if (!name) continue;
      if (extensions.empty() || name->key != key) {
        places_.push_back({.position = position, .archive = archive, .members = 0});
        key = name->key;
        extensions.clear();
      }
      if (std::ranges::find(extensions, name->extension) != extensions.end())
        throw formats::TarFault(text::concat("the sample ", text::quote(key), " has two files with the extension ",
                                             text::quote(name->extension)));
      extensions.push_back(name->extension);
      ++places_.back().members;
    }
  }

  /// Returns false for a hidden file.
  static bool add(TarSample& sample, const FixedFile& file, const std::optional<TarMember>& member) {
    if (!member) throw formats::TarFault("it has changed since it was opened");
    auto name = TarName::divide(member->name);
    if (!name) return false;
    std::string content(member->bytes, '\0');
    file.read_at(member->offset, content.data(), content.size());
    sample.key = std::move(name->key);
    sample.files[std::move(name->extension)] = std::move(content);
    return true;
  }

  formats::FilePool files_;
  std::vector<SamplePlace> places_;
};

}  // namespace data

TarShards::TarShards(const std::vector<std::filesystem::path>& archives)
    : index_(std::make_shared<const data::TarIndex>(archives)) {}

std::int64_t TarShards::size() const { return index_->size(); }
TarSample TarShards::get(std::int64_t sample) const { return index_->read(sample); }
const std::filesystem::path& TarShards::archive(std::int64_t sample) const { return index_->archive(sample); }

std::vector<std::filesystem::path> shard_paths(const std::string& pattern) {
  const auto open = pattern.find('{');
  if (open == std::string::npos) return {pattern};
  const auto close = pattern.find('}', open), points = pattern.find("..", open);
  const bool is_range = close != std::string::npos && points < close;
  const auto low = is_range ? pattern.substr(open + 1, points - open - 1) : std::string();
  const auto high = is_range ? pattern.substr(points + 2, close - points - 2) : std::string();
  long long first = 0, last = 0;
  constexpr long long most = 1'000'000;
  if (!is_range || !text::parse_integer(low, first) || !text::parse_integer(high, last) || first < 0 || last < first ||
      last - first >= most || pattern.find('{', close) != std::string::npos) {
    throw UsageError({.what = text::concat("The pattern ", text::quote(pattern), " has braces that are not one range"),
                      .hint = "write the first and the last number: train-{000..127}.tar"});
  }
  std::vector<std::filesystem::path> paths;
  for (auto number = first; number <= last; ++number) {
    auto digits = std::to_string(number);
    digits.insert(0, low.size() - std::min(low.size(), digits.size()), '0');
    paths.emplace_back(pattern.substr(0, open) + digits + pattern.substr(close + 1));
  }
  return paths;
}

}  // namespace hortator
