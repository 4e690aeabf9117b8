#include "checkpoint/write/direct_writer.hpp"

#include <algorithm>
#include <array>
#include <ctime>

#include "checkpoint/format.hpp"
#include "checkpoint/write/gaps.hpp"
#include "checkpoint/write/progress.hpp"
#include "checkpoint/write/slab_writer.hpp"
#include "core/checksum/crc32c.hpp"
#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"
#include "formats/hdf5/file.hpp"
#include "formats/hdf5/memory_file.hpp"
#include "formats/hdf5/view.hpp"

namespace hortator::checkpoint {
namespace {

std::int64_t element_bytes(const Placement& tensor) {
  return static_cast<std::int64_t>(c10::elementSize(tensor.spec.type));
}

/// Calls `work(tensor, piece)` for each that lies in the file.
template <typename Tensors, typename Work>
void for_each_piece_in(Tensors& tensors, std::size_t index, const Work& work) {
  for (auto& tensor : tensors) {
    for (auto& piece : tensor.pieces) {
      if (piece.file == index) work(tensor, piece);
    }
  }
}

void require_planned(const Layout& layout, std::size_t index, const std::vector<std::int64_t>& offsets) {
  std::size_t i = 0;
  for_each_piece_in(layout.tensors, index, [&](const Placement& tensor, const Piece& piece) {
    if (offsets[i++] == piece.offset) return;
    throw formats::FileError({.what = text::concat("HDF5 has put the dataset ", text::quote(tensor.name), " at byte ",
                                                   offsets[i - 1], ", planned was ", piece.offset),
                              .why = "the ranks would write into each other's bytes"});
  });
}

/// Makes the structure in memory and copies it into the file.
Record::File write_structure_of(const Task& task, const formats::RawFile& file) {
  formats::MemoryFile memory(task.layout.files[task.file()]);
  auto hdf5 = formats::create_file(memory);
  const auto offsets = write_structure(hdf5, task.file(), task.layout, task.description);
  hdf5.close("write a checkpoint's structure");
  require_planned(task.layout, task.file(), offsets);
  memory.copy_to(file);
  const auto bytes = static_cast<std::int64_t>(memory.bytes());
  const auto read = [&](std::int64_t offset, void* data, std::size_t count) {
    memory.read_at(static_cast<std::uint64_t>(offset), data, count);
  };
  return {.bytes = bytes, .structure = checksum_between(stretches_of(task.layout, task.file()), bytes, read)};
}

std::string now_in_utc() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 32> words{};
  std::strftime(words.data(), words.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return words.data();
}

void put_values(StateDict& values, const Outline& outline, const std::string& prefix) {
  for (const auto& [name, content] : outline) {
    std::visit(
        [&]<typename T>(const T& value) {
          if constexpr (!std::is_same_v<T, formats::TensorSpec>) values.put(prefix + name, value);
        },
        content);
  }
}

/// The layout with the places that HDF5 gave, where it was asked.
Layout placed(Layout layout, const std::vector<Record>& records) {
  for (std::size_t index = 0; index < layout.files.size(); ++index) {
    const auto& offsets = records[static_cast<std::size_t>(creator_of(layout, index))].file->offsets;
    if (offsets.empty()) continue;
    std::size_t i = 0;
    for_each_piece_in(layout.tensors, index, [&](Placement&, Piece& piece) { piece.offset = offsets[i++]; });
  }
  return layout;
}

/// Ranks come in their order: of a block that several have written, the parts follow each other.
void put_checksums(std::vector<Manifest::Dataset>& datasets, const Layout& layout, int rank, const Record& record) {
  std::size_t next = 0;
  for (const auto& [tensor, elements] : work_of(layout, rank)) {
    const auto element = element_bytes(layout.tensors[tensor]);
    const auto block = block_bytes / element;
    for (auto i = elements.begin / block; i * block < elements.end; ++i) {
      auto& checksum = datasets[tensor].blocks.at(static_cast<std::size_t>(i));
      const auto mine = record.blocks.at(next++);
      const auto bytes = (std::min(elements.end, (i + 1) * block) - std::max(elements.begin, i * block)) * element;
      checksum =
          elements.begin > i * block ? core::crc32c_joined(checksum, mine, static_cast<std::size_t>(bytes)) : mine;
    }
  }
}

std::vector<formats::ViewedTensor> viewed(const Manifest& manifest) {
  std::vector<formats::ViewedTensor> tensors;
  for (const auto& [name, dataset] : manifest.datasets) {
    auto& tensor = tensors.emplace_back(formats::ViewedTensor{.name = name, .spec = dataset.spec});
    for (const auto& piece : dataset.pieces) {
      tensor.parts.push_back(
          {.file = manifest.files[piece.file].name, .spec = part_of(dataset.spec, piece), .elements = piece.elements});
    }
  }
  return tensors;
}

Manifest manifest_of(const Task& task, const std::vector<Record>& records) {
  const auto layout = placed(task.layout, records);
  std::vector<Manifest::Dataset> datasets;
  for (const auto& tensor : layout.tensors) {
    const auto blocks = static_cast<std::size_t>((tensor.spec.bytes() + block_bytes - 1) / block_bytes);
    datasets.push_back({.spec = tensor.spec, .pieces = tensor.pieces, .blocks = std::vector<std::uint32_t>(blocks, 0)});
  }
  for (std::size_t rank = 0; rank < records.size(); ++rank)
    put_checksums(datasets, layout, static_cast<int>(rank), records[rank]);

  auto manifest = task.facts;
  manifest.world_size = static_cast<std::int64_t>(records.size());
  manifest.created = now_in_utc();
  for (std::size_t i = 0; i < layout.files.size(); ++i) {
    const auto& file = *records[static_cast<std::size_t>(creator_of(layout, i))].file;
    manifest.files.push_back(
        {.name = data_file(i, layout.files.size()), .bytes = file.bytes, .structure = file.structure});
  }
  for (std::size_t i = 0; i < datasets.size(); ++i)
    manifest.datasets.emplace(layout.tensors[i].name, std::move(datasets[i]));
  put_values(manifest.values, task.description.common, "");
  for (std::size_t rank = 0; rank < task.description.own.size(); ++rank)
    put_values(manifest.values, task.description.own[rank], rank_folder(static_cast<int>(rank)) + "/");
  return manifest;
}

}  // namespace

std::filesystem::path Task::path() const { return replacement.staged() / data_file(file(), layout.files.size()); }

std::vector<core::Range> stretches_of(const Layout& layout, std::size_t index) {
  std::vector<core::Range> stretches;
  for_each_piece_in(layout.tensors, index, [&](const Placement& tensor, const Piece& piece) {
    stretches.push_back({piece.offset, piece.offset + piece.elements.size() * element_bytes(tensor)});
  });
  return stretches;
}

Record write_part(const Task& task) { return write_part(task, {}); }

Record write_part(const Task& task, const Advance& advance) {
  Record record;
  auto file = formats::RawFile::open_for_writing(task.path(), formats::visible_within);
  if (task.makes_file()) record.file = write_structure_of(task, file);
  SlabWriter writer(file);
  for (const auto& source : task.sources) {
    writer.add(source, offset_of(task.layout, source.slab));
    if (advance) advance(source.slab.elements.size() * static_cast<std::int64_t>(source.tensor.element_size()));
  }
  record.blocks = writer.finish();
  file.sync();
  file.close();
  if (task.makes_file()) formats::sync_folder(task.replacement.staged());
  return record;
}

void commit(const Task& task, const std::vector<Record>& records) {
  const auto manifest = manifest_of(task, records);
  if (manifest.files.size() > 1) formats::write_view(task.replacement.staged() / view_file, viewed(manifest));
  const auto json = to_json(manifest);
  auto file = formats::RawFile::create(task.replacement.staged() / manifest_file);
  file.write_at(0, json.data(), json.size());
  file.sync();
  file.close();
  task.replacement.publish();
}

}  // namespace hortator::checkpoint
