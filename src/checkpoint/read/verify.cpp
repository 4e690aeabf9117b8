#include "checkpoint/read/verify.hpp"

#include <algorithm>
#include <utility>

#include "checkpoint/format.hpp"
#include "checkpoint/gap_checksum.hpp"
#include "checkpoint/read/block_reader.hpp"
#include "core/checksum/crc.hpp"
#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"
#include "formats/hdf5/dataset.hpp"
#include "formats/hdf5/file.hpp"
#include "mpi/agree.hpp"

namespace hortator::checkpoint {
namespace {

namespace fs = std::filesystem;

std::vector<core::Range> tensor_ranges(const Manifest& manifest, std::size_t index) {
  std::vector<core::Range> ranges;
  for (const auto& [name, dataset] : manifest.datasets) {
    const auto element = static_cast<std::int64_t>(c10::elementSize(dataset.spec.type));
    for (const auto& piece : dataset.pieces) {
      if (piece.file == index) ranges.push_back({piece.offset, piece.offset + piece.elements.size() * element});
    }
  }
  return ranges;
}

std::uint32_t checksum_of(const formats::RawFile& file, std::vector<core::Range> ranges) {
  std::ranges::sort(ranges, {}, &core::Range::begin);
  std::vector<std::byte> buffer(static_cast<std::size_t>(block_bytes));
  std::uint32_t checksum = 0;
  for (const auto& range : ranges) {
    for (auto begin = range.begin; begin < range.end; begin += block_bytes) {
      const auto count = static_cast<std::size_t>(std::min(block_bytes, range.end - begin));
      file.read_at(begin, buffer.data(), count);
      checksum = core::crc32c(buffer.data(), count, checksum);
    }
  }
  return checksum;
}

/// Otherwise each dataset of a missing file would wait for the file again.
constexpr std::chrono::milliseconds no_patience{0};

class Verifier {
 public:
  Verifier(const fs::path& folder, const Manifest& manifest, const std::function<void(std::int64_t)>& advance)
      : folder_(folder), manifest_(manifest), advance_(advance), reader_(folder, manifest, true, no_patience) {}

  std::vector<std::string> run() && {
    for (std::size_t i = 0; i < manifest_.files.size(); ++i) {
      attempt([&] {
        check_structure(i);
        check_hdf5(i);
      });
    }
    for (const auto& [name, dataset] : manifest_.datasets) attempt([&] { reader_.check(name, advance_); });
    return std::move(problems_);
  }

 private:
  template <typename Work>
  void attempt(const Work& work) {
    try {
      work();
    } catch (const std::exception& error) {
      // Each dataset of a missing file reports the same error.
      if (problems_.empty() || problems_.back() != error.what()) problems_.emplace_back(error.what());
    }
  }

  fs::path path(std::size_t index) const { return folder_ / manifest_.files[index].name; }

  void check_structure(std::size_t index) {
    const auto& file = reader_.file(index);
    const auto& facts = manifest_.files[index];
    const auto found = gap_checksum(tensor_ranges(manifest_, index), facts.bytes,
                                    [&](std::int64_t offset, void* data, std::size_t bytes) {
                                      file.read_at(offset, data, bytes);
                                      advance_(static_cast<std::int64_t>(bytes));
                                    });
    if (found == facts.structure_crc32c) return;
    throw formats::FileError({.what = text::concat("The file ", path(index).string(),
                                                   " is damaged: the checksum of its structure does not match"),
                              .why = "the tensors may be intact, but other programs may not find them"});
  }

  void check_hdf5(std::size_t index) const {
    const formats::Hdf5Lock lock;
    const auto file = formats::open_file(path(index));
    const auto bytes = static_cast<std::uint64_t>(manifest_.files[index].bytes);
    for (const auto& [name, dataset] : manifest_.datasets) {
      for (const auto& piece : dataset.pieces) {
        if (piece.file != index) continue;
        const auto found = formats::inspect_dataset(formats::open_dataset(file, name), name, bytes);
        if (found.offset == piece.offset && found.spec == stored_spec(dataset.spec, piece)) continue;
        throw formats::FileError(
            {.what = text::concat("The file ", path(index).string(), " has the dataset ", text::quote(name),
                                  " at another offset, or with another type or shape, than the manifest has")});
      }
    }
  }

  const fs::path& folder_;
  const Manifest& manifest_;
  const std::function<void(std::int64_t)>& advance_;
  BlockReader reader_;
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> verify(const fs::path& folder, const Manifest& manifest,
                                const std::function<void(std::int64_t)>& advance) {
  return Verifier(folder, manifest, advance).run();
}

bool is_intact(const fs::path& folder, const Manifest& manifest, std::size_t file) {
  const auto& facts = manifest.files[file];
  try {
    const auto opened = formats::RawFile::open_for_reading(folder / facts.name);
    if (std::cmp_not_equal(opened.bytes(), facts.bytes)) return false;
    const auto ranges = tensor_ranges(manifest, file);
    const auto structure = gap_checksum(ranges, facts.bytes, [&](std::int64_t offset, void* data, std::size_t bytes) {
      opened.read_at(offset, data, bytes);
    });
    return structure == facts.structure_crc32c &&
           (!facts.tensors_crc32c || checksum_of(opened, ranges) == *facts.tensors_crc32c);
  } catch (const formats::FileError&) {
    return false;
  }
}

void verify_on_all_ranks(const mpi::Communicator& comm, const fs::path& folder, const Manifest& manifest,
                         bool compare) {
  mpi::all_or_none(comm, [&] {
    BlockReader reader(folder, manifest, compare);
    int number = 0;
    for (const auto& [name, dataset] : manifest.datasets) {
      if (number++ % comm.size() == comm.rank()) reader.check(name, [](std::int64_t /*bytes*/) {});
    }
  });
}

}  // namespace hortator::checkpoint
