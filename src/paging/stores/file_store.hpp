#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/file/cache_filler.hpp"
#include "formats/file/fixed_file.hpp"
#include "paging/io_thread.hpp"
#include "paging/stores/common_scratch.hpp"
#include "paging/stores/store.hpp"

namespace hortator::paging {

/// Where the bytes of a storage lie in files that are there already.
struct FilePlace {
  std::shared_ptr<const formats::FixedFile> file = {};  ///< null: nowhere yet
  std::uint64_t offset = 0;
  /// In place of a file: puts all of them there, for what files hold in other types, or with checksums. Called by one
  /// thread at a time.
  std::function<void(std::byte* to)> read = {};
};

/// Pages in files. What was never published is read from the files that were given (raw, HDF5, safetensors: bytes at
/// offsets), which must stay as they are: one that was changed, cut short or cannot be read is an error that names it.
/// What is published goes into a file without a name in the scratch folder, which is gone when the process is.
class FileStore final : public Store {
 public:
  struct Options {
    std::filesystem::path scratch = {};  ///< a folder with room for all storages; empty: publishing is an error
  };
  /// In bytes.
  static std::uint64_t room_for(const std::vector<std::uint64_t>& storage_bytes);

  /// `storage_bytes`, `places`: of each storage by its number. Takes the room in the scratch folder at once, so that a
  /// disk that is too small says so now; throws FileError.
  /// `common`: in place of a file of its own there.
  FileStore(const std::vector<std::uint64_t>& storage_bytes, std::vector<FilePlace> places, const Options& options,
            std::optional<CommonScratch> common = {});

  comm::Work fetch(const Page& page, std::span<std::byte> frame) override;
  /// The system reads it into its cache, as far as it likes.
  void announce(const Page& page) override;
  comm::Work publish(const Page& page, std::span<const std::byte> frame) override;
  bool follows_storages() const override { return true; }

 private:
  /// Of a storage; the thread's alone.
  struct Extent {
    FilePlace given = {};
    std::uint64_t scratch_offset = 0;
    bool is_in_scratch = false;
  };
  Extent& extent(const Page::Place& place) { return extents_[static_cast<std::size_t>(place.storage)]; }
  void bring_into_cache(const Page::Place& place);
  void read(const Page::Place& place, std::byte* to);
  void write(const Page::Place& place, const std::byte* from);

  std::vector<Extent> extents_;
  std::optional<CommonScratch> scratch_;  ///< in common with nobody, as a rule
  formats::CacheFiller cache_;
  IoThread thread_;  ///< the last: it works with all of these
};

}  // namespace hortator::paging
