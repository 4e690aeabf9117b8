#include "checkpoint/write/direct_writer.hpp"

#include "checkpoint/gap_checksum.hpp"
#include "checkpoint/write/slice_writer.hpp"
#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"
#include "formats/hdf5/file.hpp"
#include "formats/hdf5/memory_file.hpp"

namespace hortator::checkpoint {
namespace {

void require_planned(const Layout& layout, std::size_t index, const std::vector<std::int64_t>& offsets) {
  std::size_t i = 0;
  for_each_piece_in_file(layout.tensors, index, [&](const TensorPlacement& tensor, const StoredPiece& piece) {
    if (offsets[i++] == piece.offset) return;
    throw formats::FileError({.what = text::concat("HDF5 placed the dataset ", text::quote(tensor.name), " at byte ",
                                                   offsets[i - 1], ", expected byte ", piece.offset),
                              .why = "the ranks would write into each other's bytes"});
  });
}

/// Builds the structure in memory and copies it into the file.
RankReport::File write_structure_of(const SaveTask& task, const formats::RawFile& file) {
  formats::MemoryFile memory(task.layout.files[task.file()]);
  auto hdf5 = formats::create_file(memory);
  const auto offsets = write_hdf5_structure(hdf5, task.file(), task.layout, task.description);
  hdf5.close("write a checkpoint's structure");
  require_planned(task.layout, task.file(), offsets);
  memory.copy_to(file);
  const auto bytes = static_cast<std::int64_t>(memory.bytes());
  const auto read = [&](std::int64_t offset, void* data, std::size_t count) {
    memory.read_at(static_cast<std::uint64_t>(offset), data, count);
  };
  return {.bytes = bytes, .structure_crc32c = gap_checksum(tensor_ranges(task.layout, task.file()), bytes, read)};
}

}  // namespace

RankReport write_part(const SaveTask& task, const Advance& advance) {
  RankReport report;
  auto file = formats::RawFile::open_for_writing(task.path(), formats::visible_within);
  if (task.makes_file()) report.file = write_structure_of(task, file);
  SliceWriter writer(file);
  for (const auto& source : task.sources) {
    writer.add(source, offset_of(task.layout, source.slice));
    if (advance) advance(source.slice.elements.size() * static_cast<std::int64_t>(source.tensor.element_size()));
  }
  report.blocks = writer.finish();
  file.sync();
  file.close();
  if (task.makes_file()) formats::sync_folder(task.replacement.staged());
  return report;
}

}  // namespace hortator::checkpoint
