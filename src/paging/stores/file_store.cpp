#include "paging/stores/file_store.hpp"

#include <hortator/error.hpp>
#include <utility>

#include "core/text/text.hpp"
#include "machine/memory/system_memory.hpp"

namespace hortator::paging {
namespace {

// Whole pages, which are whole disk sectors as well.
std::uint64_t room_for_one(std::uint64_t bytes) { return bytes == 0 ? 0 : machine::whole_pages(bytes); }

CommonScratch own_scratch(const std::filesystem::path& folder, std::uint64_t bytes) {
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

FileStore::FileStore(const std::vector<std::uint64_t>& storage_bytes, std::vector<FileLocation> locations,
                     const Options& options, std::optional<CommonScratch> common)
    : scratch_(std::move(common)) {
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < storage_bytes.size(); ++i) {
    if (locations[i].file != nullptr) locations[i].file->expect_front_to_back();
    locations_.push_back({.given = std::move(locations[i]), .scratch_offset = end});
    end += room_for_one(storage_bytes[i]);
  }
  if (!scratch_ && !options.scratch.empty()) scratch_ = own_scratch(options.scratch, end);
  if (scratch_) scratch_->file.expect_front_to_back();
}

comm::Work FileStore::fetch(const Page& page, std::span<std::byte> frame) {
  thread_.forget(page.number);  // it is read now
  return thread_.run([this, &page, frame] {
    for (const auto& position : page.positions) read(position, frame.data() + position.offset);
  });
}

void FileStore::announce(const Page& page) {
  thread_.run_when_idle(page.number, [this, positions = page.positions] {
    for (const auto& position : positions) bring_into_cache(position);
  });
}

comm::Work FileStore::publish(const Page& page, std::span<const std::byte> frame) {
  if (!scratch_) {
    throw UsageError({.what = "A parameter was changed whose memory is a file for reading",
                      .why = "there is no file for its new values",
                      .hint = "set a folder for offloading, or keep the parameter in memory"});
  }
  return thread_.run([this, &page, frame] {
    for (const auto& position : page.positions) write(position, frame.data() + position.offset);
  });
}

void FileStore::bring_into_cache(const PagePosition& position) {
  const auto& at = location(position);
  if (at.is_in_scratch) {
    cache_.bring(scratch_->file.descriptor(), at.scratch_offset, position.bytes);
  } else if (at.given.file != nullptr) {
    cache_.bring(at.given.file->descriptor(), at.given.offset, position.bytes);
  }
}

void FileStore::read(const PagePosition& position, std::byte* to) {
  const auto& at = location(position);
  if (at.is_in_scratch) {
    scratch_->file.read_at(static_cast<std::int64_t>(at.scratch_offset), to, position.bytes);
    return;
  }
  if (at.given.read) return at.given.read(to);
  if (at.given.file == nullptr) throw Error({.what = "A parameter is to be read that no file holds"});
  at.given.file->read_at(at.given.offset, to, position.bytes);
  at.given.file->require_unchanged();
}

void FileStore::write(const PagePosition& position, const std::byte* from) {
  auto& at = location(position);
  const auto bytes = position.bytes / static_cast<std::size_t>(scratch_->ranks);
  const auto begin = bytes * static_cast<std::size_t>(scratch_->rank);
  scratch_->file.write_at(static_cast<std::int64_t>(at.scratch_offset + begin), from + begin, bytes);
  at.is_in_scratch = true;
}

}  // namespace hortator::paging
