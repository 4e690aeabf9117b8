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
#include "paging/stores/io_thread.hpp"
#include "paging/stores/scratch.hpp"
#include "paging/stores/store.hpp"

namespace hortator::paging {

/// Where the bytes of a storage lie in existing files.
struct FileLocation {
  std::shared_ptr<const formats::FixedFile> file = {};  ///< null: in no file yet
  std::uint64_t offset = 0;
  /// Used instead of a file, if set: writes all bytes to `to`. For files that hold other types, or checksums. Called by
  /// one thread at a time.
  std::function<void(std::byte* to)> read = {};
};

/// Pages in files. Content that was never published is read from the given files (raw, HDF5, safetensors: bytes at
/// offsets), which must not change: a file that was changed, truncated or cannot be read is an error that names it.
/// Published content is written to an unnamed file in the scratch folder, which disappears with the process.
class FileStore final : public Store {
 public:
  struct Options {
    std::filesystem::path scratch = {};  ///< a folder with space for all storages; empty: publishing is an error
  };
  /// The size of the scratch file, in bytes.
  static std::uint64_t room_for(const std::vector<std::uint64_t>& storage_bytes);

  /// `storage_bytes`, `locations`: of each storage by its number. `common`: used instead of a file of its own in the
  /// scratch folder. Allocates the space in the scratch folder, so that a full disk is reported now; throws FileError.
  FileStore(const std::vector<std::uint64_t>& storage_bytes, std::vector<FileLocation> locations,
            const Options& options, std::optional<CommonScratch> common = {});

  comm::Work fetch(const Page& page, std::span<std::byte> frame) override;
  /// Lets the system read the page into its cache.
  void announce(const Page& page) override;
  comm::Work publish(const Page& page, std::span<const std::byte> frame) override;
  bool follows_storages() const override { return true; }

 private:
  /// Where a storage lies. Used only by the thread.
  struct StorageLocation {
    FileLocation given = {};
    std::uint64_t scratch_offset = 0;
    bool is_in_scratch = false;
  };
  StorageLocation& location(const PagePosition& position) {
    return locations_[static_cast<std::size_t>(position.storage)];
  }
  void bring_into_cache(const PagePosition& position);
  void read(const PagePosition& position, std::byte* to);
  void write(const PagePosition& position, const std::byte* from);

  std::vector<StorageLocation> locations_;
  std::optional<CommonScratch> scratch_;  ///< usually this rank's own
  formats::CacheFiller cache_;
  IoThread thread_;  ///< last: it uses the other members
};

}  // namespace hortator::paging
