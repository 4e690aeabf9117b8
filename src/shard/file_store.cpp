#include "shard/file_store.hpp"

#include <hortator/error.hpp>
#include <utility>

#include "base/text.hpp"

namespace hortator::shard {
namespace {

constexpr std::uint64_t scratch_alignment = 4096;  // of the system's pages and the disk's sectors

}  // namespace

FileStore::FileStore(std::vector<std::uint64_t> storage_bytes, std::vector<FilePlace> places, const Options& options) {
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < storage_bytes.size(); ++i) {
    if (places[i].file != nullptr) places[i].file->expect_front_to_back();
    extents_.push_back({.given = std::move(places[i]), .scratch_offset = end});
    end += (storage_bytes[i] + scratch_alignment - 1) / scratch_alignment * scratch_alignment;
  }
  if (options.scratch.empty()) return;
  scratch_ = io::RawFile::create_unnamed(options.scratch);
  scratch_->occupy(end);
  scratch_->expect_front_to_back();
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
    cache_.bring(scratch_->descriptor(), at.scratch_offset, place.bytes);
  } else if (at.given.file != nullptr) {
    cache_.bring(at.given.file->descriptor(), at.given.offset, place.bytes);
  }
}

void FileStore::read(const Page::Place& place, std::byte* to) {
  const auto& at = extent(place);
  if (at.is_in_scratch) {
    scratch_->read_at(static_cast<std::int64_t>(at.scratch_offset), to, place.bytes);
    return;
  }
  if (at.given.read) return at.given.read(to);
  if (at.given.file == nullptr) throw Error({.what = "a parameter was to be read that no file holds"});
  at.given.file->read_at(at.given.offset, to, place.bytes);
  at.given.file->require_unchanged();
}

void FileStore::write(const Page::Place& place, const std::byte* from) {
  auto& at = extent(place);
  scratch_->write_at(static_cast<std::int64_t>(at.scratch_offset), from, place.bytes);
  at.is_in_scratch = true;
}

}  // namespace hortator::shard
