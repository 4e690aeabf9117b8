#include "checkpoint/memory/node_memory.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "checkpoint/format.hpp"
#include "checkpoint/manifest.hpp"
#include "checkpoint/read/verify.hpp"
#include "core/checksum/crc.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "formats/file/file_error.hpp"
#include "formats/file/folder_listing.hpp"
#include "formats/file/raw_file.hpp"
#include "machine/memory/memory_limit.hpp"

namespace hortator::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view stem = "checkpoint_";

std::string name_of(std::int64_t number) { return text::concat(stem, number); }

// Only of names that name_of() gives to numbers, without the largest: one is added to the last number.
std::optional<std::int64_t> number_of(const std::string& name) {
  long long number = 0;
  if (!name.starts_with(stem) || !text::parse_integer(std::string_view(name).substr(stem.size()), number)) return {};
  const bool is_number = number >= 0 && number < std::numeric_limits<std::int64_t>::max() && name == name_of(number);
  return is_number ? std::optional<std::int64_t>(number) : std::nullopt;
}

std::vector<std::int64_t> numbers_in(const fs::path& folder) {
  std::vector<std::int64_t> numbers;
  for (const auto& name : formats::names_in(folder)) {
    if (const auto number = number_of(name)) numbers.push_back(*number);
  }
  std::ranges::sort(numbers);
  return numbers;
}

HeldGeneration held_in(const fs::path& folder, std::int64_t number) {
  const auto json = manifest_text(folder);
  const auto manifest = parse_manifest(folder, json);
  HeldGeneration held{
      .number = number, .updates = manifest.updates, .manifest = core::crc32c(json.data(), json.size())};
  for (const auto& file : manifest.files) {
    held.state_files += is_frozen_file(file.name) ? 0 : 1;
    std::error_code missing;
    const auto bytes = fs::file_size(folder / file.name, missing);
    held.files.push_back(!missing && std::cmp_equal(bytes, file.bytes));
    held.bytes.push_back(file.bytes);
  }
  return held;
}

std::uint64_t bytes_in(const fs::path& folder) {
  std::uint64_t bytes = 0;
  std::error_code gone;
  for (fs::recursive_directory_iterator entry(folder, gone), end; !gone && entry != end; entry.increment(gone)) {
    std::error_code skipped;
    // A file that checkpoints share has a link in each.
    if (entry->is_regular_file(skipped))
      bytes += entry->file_size(skipped) / std::max<std::uintmax_t>(entry->hard_link_count(skipped), 1);
  }
  return bytes;
}

bool is_shared(const fs::path& file) {
  std::error_code unknown;
  const auto links = fs::hard_link_count(file, unknown);
  return !unknown && links > 1;
}

}  // namespace

std::uint64_t default_limit(std::uint64_t available, std::uint64_t held) { return available / 2 + held / 2; }

const char* to_string(NodeMedium medium) { return medium == NodeMedium::memory ? "memory" : "disk"; }

NodeMemory::NodeMemory(fs::path folder, std::optional<std::uint64_t> max_bytes, NodeMedium medium)
    : folder_(std::move(folder)), max_bytes_(max_bytes), medium_(medium) {}

fs::path NodeMemory::path(std::int64_t number) const { return folder_ / name_of(number); }

NodeInventory NodeMemory::inventory() const {
  NodeInventory found;
  for (const auto number : numbers_in(folder_)) {
    try {
      found.push_back(held_in(path(number), number));
    } catch (const formats::FileError& error) {
      log::warn("a checkpoint in this node's ", to_string(medium_), " cannot be read: ", error.what());
    }
  }
  return found;
}

std::int64_t NodeMemory::last_number() const {
  const auto numbers = numbers_in(folder_);
  return numbers.empty() ? -1 : numbers.back();
}

// The folder is renamed before it loses its manifest: readers never see a part of a checkpoint. Bytes between tensors
// may stay those of the older one, which loading does not read.
void NodeMemory::keep(std::optional<std::int64_t> number, const fs::path& reused) const {
  bool has_reused = false;
  for (const auto& name : formats::names_in(folder_)) {
    const auto its = number_of(name);
    if (!name.starts_with(stem) || (its && its == number)) continue;
    std::error_code error;
    if (!std::exchange(has_reused, true)) {
      fs::rename(folder_ / name, reused, error);
    } else {
      fs::remove_all(folder_ / name, error);
    }
    if (error) formats::throw_system_error(text::concat("remove ", folder_ / name), error.value());
  }
  if (!has_reused) make(reused);
}

void NodeMemory::make(const fs::path& folder, const std::vector<std::string>& files, std::uint64_t bytes,
                      std::optional<std::int64_t> kept, const std::vector<std::string>& linked) {
  keep(kept, folder);
  for (const auto& name : formats::names_in(folder)) {
    if (std::ranges::count(files, name) == 0 || is_shared(folder / name)) fs::remove_all(folder / name);
  }
  const auto reused = bytes_in(folder);
  try {
    require_room(bytes - std::min(bytes, reused));
  } catch (...) {
    fs::remove_all(folder);
    throw;
  }
  for (const auto& name : files) {
    if (!fs::exists(folder / name)) formats::RawFile::create(folder / name).close();
  }
  for (const auto& name : linked) fs::create_hard_link(path(kept.value()) / name, folder / name);
}

void NodeMemory::require_room(std::uint64_t bytes) {
  if (!max_bytes_ && medium_ == NodeMedium::memory)
    max_bytes_ = default_limit(machine::available_memory().value_or(0), used());
  if (max_bytes_) {
    require(bytes, *max_bytes_ - std::min(*max_bytes_, used()),
            text::concat("its limit of ", units::bytes(*max_bytes_)));
  }
  std::error_code unknown;
  const auto space = fs::space(folder_, unknown);
  if (unknown) formats::throw_system_error(text::concat("look into ", folder_), unknown.value());
  require(bytes, space.available, text::concat("the file system of ", folder_.string()));
}

void NodeMemory::require(std::uint64_t bytes, std::uint64_t room, const std::string& of) const {
  if (bytes <= room) return;
  const std::string option = medium_ == NodeMedium::memory ? "memory_checkpoint" : "local_checkpoint";
  throw Error({.what = text::concat("A checkpoint in this node's ", to_string(medium_), " needs ", units::bytes(bytes),
                                    ", and ", of, " has ", units::bytes(room), " left"),
               .hint = text::concat("raise ", option, ".max_bytes or the file system's limit, use ", option,
                                    ".partner = 0, or divide the state among more nodes")});
}

std::vector<std::string> NodeMemory::remove_damaged(std::int64_t number) const {
  std::vector<std::string> removed;
  const auto folder = path(number);
  std::error_code error;
  Manifest manifest;
  try {
    manifest = read_manifest(folder);
  } catch (const formats::FileError&) {  // inventory() leaves it out as well
    return removed;
  }
  for (std::size_t file = 0; file < manifest.files.size(); ++file) {
    const auto& name = manifest.files[file].name;
    if (!fs::exists(folder / name, error) || is_intact(folder, manifest, file)) continue;
    fs::remove(folder / name);
    removed.push_back(name);
  }
  return removed;
}

std::uint64_t NodeMemory::used() const { return bytes_in(folder_); }

void NodeMemory::make(const fs::path& folder) const {
  std::error_code error;
  fs::create_directory(folder, error);
  if (error) formats::throw_system_error(text::concat("create the folder ", folder), error.value());
}

}  // namespace hortator::checkpoint
