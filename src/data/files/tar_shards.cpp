#include <hortator/datasets/tar_shards.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>

#include "core/text/text.hpp"
#include "data/files/rows.hpp"
#include "formats/file/file_error.hpp"
#include "formats/file/file_pool.hpp"
#include "formats/tar/members.hpp"

namespace hortator {

namespace data {
namespace {

using formats::FileError;
using formats::FixedFile;
using formats::TarMember;

/// The two parts of a member's name.
struct MemberName {
  std::string key, extension;
};

/// Nothing for a hidden file.
std::optional<MemberName> split_name(const std::string& name) {
  const auto begin = name.rfind('/') + 1;  // 0 without a folder
  const auto point = name.find('.', begin);
  if (point == begin) return {};
  if (point == std::string::npos) {
    throw formats::TarFault(
        text::concat("the member ", text::quote(name), " has no extension, so it is not a part of a sample"));
  }
  auto extension = name.substr(point + 1);
  std::ranges::transform(extension, extension.begin(), [](unsigned char c) { return std::tolower(c); });
  return MemberName{.key = name.substr(0, point), .extension = std::move(extension)};
}

void refuse_compressed(const FixedFile& file) {
  std::array<unsigned char, 2> begin = {};
  if (file.bytes() >= begin.size()) file.read_at(0, begin.data(), begin.size());
  if (begin[0] != 0x1f || begin[1] != 0x8b) return;
  throw FileError({.what = text::concat(file.path(), " is compressed"),
                   .why = "samples are read from any place of an archive",
                   .hint = "unpack it with gunzip; images are compressed already"});
}

[[noreturn]] void throw_invalid(const std::filesystem::path& path, const formats::TarFault& fault) {
  throw FileError(
      {.what = text::concat(path, " is not a valid tar shard: ", fault.what()),
       .hint = "copy it again, or write it with tar or webdataset: plain files, those of a sample in sequence"});
}

formats::TarBytes reader_of(const FixedFile& file) {
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
      refuse_compressed(*file);
      try {
        scan(*file);
      } catch (const formats::TarFault& fault) {
        throw_invalid(path, fault);
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
      throw_invalid(file.path(), fault);
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
      const auto name = split_name(member->name);
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
    auto name = split_name(member->name);
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
