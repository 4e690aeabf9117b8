#include "paging/stores/file_store.hpp"

#include <hortator/error.hpp>
#include <utility>

#include "core/text/text.hpp"
#include "machine/memory/system_memory.hpp"

namespace hortator::paging {
namespace {

// Of whole pages, which are whole sectors of the disk as well.
std::uint64_t room_for_one(std::uint64_t bytes) { return bytes == 0 ? 0 : machine::whole_pages(bytes); }

CommonScratch alone(const std::filesystem::path& folder, std::uint64_t bytes) {
  auto file = formats::RawFile::create_unnamed(folder);
  file.occupy(bytes);
  return {.file = std::move(file)};
}

}  // namespace

std::uint64_t FileStore::room_for(const std::vector<std::uint64_t>& storage_bytes) {
  std::uint64_t room = 0;
  for (const auto bytes : storage_bytes) room += room_for_one(bytes);
  return room;
}

FileStore::FileStore(const std::vector<std::uint64_t>& storage_bytes, std::vector<FilePlace> places,
                     const Options& options, std::optional<CommonScratch> common)
    : scratch_(std::move(common)) {
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < storage_bytes.size(); ++i) {
    if (places[i].file != nullptr) places[i].file->expect_front_to_back();
    extents_.push_back({.given = std::move(places[i]), .scratch_offset = end});
    end += room_for_one(storage_bytes[i]);
  }
  if (!scratch_ && !options.scratch.empty()) scratch_ = alone(options.scratch, end);
  if (scratch_) scratch_->file.expect_front_to_back();
}

comm::Work FileStore::fetch(const Page& page, std::span<std::byte> frame) {
  thread_.forget(page.number);  // what was announced comes now
  return thread_.run([this, &page, frame] {
    for (const auto& place : page.places) read(place, frame.data() + place.offset);
  });
}

void FileStore::announce(const Page& page) {
  thread_.run_when_idle(page.number, [this, places = page.places] {
    for (const auto& place : places) bring_into_cache(place);
  });
}

comm::Work FileStore::publish(const Page& page, std::span<const std::byte> frame) {
  if (!scratch_) {
    throw UsageError({.what = "a parameter was changed whose memory is a file for reading",
                      .why = "there is no place for its new values",
                      .hint = "give a folder for them, or keep the parameter in memory"});
  }
  return thread_.run([this, &page, frame] {
    for (const auto& place : page.places) write(place, frame.data() + place.offset);
  });
}

void FileStore::bring_into_cache(const Page::Place& place) {
  const auto& at = extent(place);
  if (at.is_in_scratch) {
    cache_.bring(scratch_->file.descriptor(), at.scratch_offset, place.bytes);
  } else if (at.given.file != nullptr) {
    cache_.bring(at.given.file->descriptor(), at.given.offset, place.bytes);
  }
}

void FileStore::read(const Page::Place& place, std::byte* to) {
  const auto& at = extent(place);
  if (at.is_in_scratch) {
    scratch_->file.read_at(static_cast<std::int64_t>(at.scratch_offset), to, place.bytes);
    return;
  }
  if (at.given.read) return at.given.read(to);
  if (at.given.file == nullptr) throw Error({.what = "a parameter was to be read that no file holds"});
  at.given.file->read_at(at.given.offset, to, place.bytes);
  at.given.file->require_unchanged();
}

void FileStore::write(const Page::Place& place, const std::byte* from) {
  auto& at = extent(place);
  const auto bytes = place.bytes / static_cast<std::size_t>(scratch_->ranks);
  const auto begin = bytes * static_cast<std::size_t>(scratch_->rank);
  scratch_->file.write_at(static_cast<std::int64_t>(at.scratch_offset + begin), from + begin, bytes);
  at.is_in_scratch = true;
}

}  // namespace hortator::paging
