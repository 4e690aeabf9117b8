#include "checkpoint/write/direct_writer.hpp"

#include <algorithm>

#include "checkpoint/format.hpp"
#include "checkpoint/gap_checksum.hpp"
#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"
#include "formats/hdf5/file.hpp"
#include "formats/hdf5/memory_file.hpp"
#include "formats/tensor/tensor_ranges.hpp"

namespace hortator::checkpoint {
namespace {

constexpr std::size_t hot_bytes = std::size_t{1} << 19;  // stays in the cache between the checksum and the write

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
RankReport::File write_structure_of(const SaveTask& task, std::size_t index, const formats::RawFile& file) {
  formats::MemoryFile memory(task.layout.files[index]);
  auto hdf5 = formats::create_file(memory);
  const auto offsets = write_hdf5_structure(hdf5, index, task.layout, task.description);
  hdf5.close("write a checkpoint's structure");
  require_planned(task.layout, index, offsets);
  memory.copy_to(file);
  const auto bytes = static_cast<std::int64_t>(memory.bytes());
  const auto read = [&](std::int64_t offset, void* data, std::size_t count) {
    memory.read_at(static_cast<std::uint64_t>(offset), data, count);
  };
  return {.bytes = bytes, .structure_crc32c = gap_checksum(tensor_ranges(task.layout, index), bytes, read)};
}

/// Passes the bytes of a slice on, in pieces.
template <typename Work>
void for_each_run(const TensorSource& source, const Work& work) {
  const auto element = static_cast<std::int64_t>(source.tensor.element_size());
  const auto elements = source.in_tensor();
  // The usual case. It needs no views, which cost more than writing a small tensor.
  if (formats::lies_flat(source.tensor)) {
    const auto* data = static_cast<const std::byte*>(source.tensor.const_data_ptr());
    return work(data + elements.begin * element, static_cast<std::size_t>(elements.size() * element));
  }
  formats::for_each_piece(source.tensor, elements, block_bytes / element, [&](const at::Tensor& piece) {
    const auto host = formats::ready_to_store(piece);
    work(static_cast<const std::byte*>(host.const_data_ptr()), host.nbytes());
  });
}

/// Writes the slices of one file, and its structure if this rank creates it.
void write_file(const SaveTask& task, std::size_t index, const Advance& advance, RankReport& report) {
  auto file = formats::RawFile::open_for_writing(task.path(index), formats::visible_within());
  if (task.makes_files()) report.files.push_back(write_structure_of(task, index, file));
  SliceWriter writer(file);
  for (const auto& source : task.sources) {
    if (task.layout.tensors[source.slice.tensor].is_frozen != (index >= task.layout.state_files)) continue;
    writer.add(source.read ? source.loaded() : source, offset_of(task.layout, source.slice));
    if (advance) advance(source.slice.elements.size() * static_cast<std::int64_t>(source.tensor.element_size()));
  }
  const auto blocks = writer.finish();
  report.blocks.insert(report.blocks.end(), blocks.begin(), blocks.end());
  file.sync();
  file.close();
}

}  // namespace

void SliceWriter::add(const TensorSource& source, std::int64_t offset) {
  if (source.is_part) pieces_.finish();
  add_slice(source, offset);
  if (source.is_part) pieces_.finish();
}

void SliceWriter::add_slice(const TensorSource& source, std::int64_t offset) {
  checksums_.begin_slice(source.slice.elements.begin * static_cast<std::int64_t>(source.tensor.element_size()));
  for_each_run(source, [&](const std::byte* data, std::size_t bytes) {
    add_bytes(offset, data, bytes);
    offset += static_cast<std::int64_t>(bytes);
  });
}

void SliceWriter::add_bytes(std::int64_t offset, const std::byte* data, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes; done += hot_bytes) {
    const auto count = std::min(hot_bytes, bytes - done);
    checksums_.add(data + done, count);
    pieces_.put(offset + static_cast<std::int64_t>(done), data + done, count);
  }
}

std::vector<std::uint32_t> SliceWriter::finish() {
  pieces_.finish();
  return checksums_.take();
}

std::vector<std::uint32_t> checksums_of(const std::vector<TensorSource>& sources) {
  BlockChecksums checksums;
  for (const auto& source : sources) {
    const auto loaded = source.read ? source.loaded() : source;
    checksums.begin_slice(source.slice.elements.begin * static_cast<std::int64_t>(loaded.tensor.element_size()));
    for_each_run(loaded, [&](const std::byte* data, std::size_t bytes) { checksums.add(data, bytes); });
  }
  return checksums.take();
}

RankReport write_part(const SaveTask& task, const Advance& advance) {
  RankReport report;
  for (const auto file : task.layout.files_of(task.rank)) write_file(task, file, advance, report);
  if (task.makes_files()) formats::sync_folder(task.replacement.staged());
  return report;
}

}  // namespace hortator::checkpoint
