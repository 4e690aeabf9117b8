#include "checkpoint/write/save_task.hpp"

#include <algorithm>
#include <cstring>

#include "checkpoint/format.hpp"
#include "checkpoint/packed_bytes.hpp"
#include "core/checksum/crc.hpp"
#include "core/time.hpp"
#include "formats/file/raw_file.hpp"
#include "formats/hdf5/structure.hpp"
#include "mpi/collectives.hpp"

namespace hortator::checkpoint {
namespace {

namespace fs = std::filesystem;

void put_values(StateDict& values, const StateOutline& outline, const std::string& prefix) {
  for (const auto& [name, content] : outline) {
    std::visit(
        [&]<typename T>(const T& value) {
          if constexpr (!std::is_same_v<T, formats::TensorSpec>) values.put(prefix + name, value);
        },
        content);
  }
}

/// The layout with the offsets that HDF5 chose, for files that were written with MPI-IO.
Layout with_offsets(Layout layout, const std::vector<RankReport>& reports) {
  for (std::size_t index = 0; index < layout.files.size(); ++index) {
    const auto& offsets = reports[static_cast<std::size_t>(creator_of(layout, index))].file->offsets;
    if (offsets.empty()) continue;
    std::size_t i = 0;
    for_each_piece_in_file(layout.tensors, index,
                           [&](TensorPlacement&, StoredPiece& piece) { piece.offset = offsets[i++]; });
  }
  return layout;
}

/// Must be called in the order of the ranks: the checksums of a block that several ranks have written are joined from
/// front to back.
void put_checksums(std::vector<Manifest::Dataset>& datasets, const Layout& layout, int rank, const RankReport& report) {
  std::size_t next = 0;
  for (const auto& [tensor, elements] : slices_of_rank(layout, rank)) {
    const auto element = layout.tensors[tensor].spec.element_bytes();
    const auto block = block_bytes / element;
    for (auto i = elements.begin / block; i * block < elements.end; ++i) {
      auto& checksum = datasets[tensor].blocks.at(static_cast<std::size_t>(i));
      const auto mine = report.blocks.at(next++);
      const auto bytes = (std::min(elements.end, (i + 1) * block) - std::max(elements.begin, i * block)) * element;
      checksum =
          elements.begin > i * block ? core::crc32c_joined(checksum, mine, static_cast<std::size_t>(bytes)) : mine;
    }
  }
}

std::vector<formats::ViewedTensor> tensors_of_view(const Manifest& manifest) {
  std::vector<formats::ViewedTensor> tensors;
  for (const auto& [name, dataset] : manifest.datasets) {
    auto& tensor = tensors.emplace_back(formats::ViewedTensor{.name = name, .spec = dataset.spec});
    for (const auto& piece : dataset.pieces) {
      tensor.parts.push_back({.file = manifest.files[piece.file].name,
                              .spec = stored_spec(dataset.spec, piece),
                              .elements = piece.elements});
    }
  }
  return tensors;
}

// What the program's hooks have written must be on the disk as the rest is.
void settle_files_of_hooks(const fs::path& folder) {
  if (!fs::exists(folder)) return;
  if (fs::is_empty(folder)) {
    fs::remove(folder);
    return;
  }
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) formats::RawFile::open_for_reading(entry.path()).sync();
    if (entry.is_directory()) formats::sync_folder(entry.path());
  }
  formats::sync_folder(folder);
}

}  // namespace

Manifest manifest_of(const SaveTask& task, const std::vector<RankReport>& reports) {
  const auto layout = with_offsets(task.layout, reports);
  std::vector<Manifest::Dataset> datasets;
  for (const auto& tensor : layout.tensors) {
    const auto blocks = static_cast<std::size_t>((tensor.spec.bytes() + block_bytes - 1) / block_bytes);
    datasets.push_back({.spec = tensor.spec, .pieces = tensor.pieces, .blocks = std::vector<std::uint32_t>(blocks, 0)});
  }
  for (std::size_t rank = 0; rank < reports.size(); ++rank)
    put_checksums(datasets, layout, static_cast<int>(rank), reports[rank]);

  auto manifest = task.facts;
  manifest.world_size = static_cast<std::int64_t>(reports.size());
  manifest.created = core::utc();
  for (std::size_t i = 0; i < layout.files.size(); ++i) {
    const auto& file = *reports[static_cast<std::size_t>(creator_of(layout, i))].file;
    manifest.files.push_back(
        {.name = data_file(i, layout.files.size()), .bytes = file.bytes, .structure_crc32c = file.structure_crc32c});
  }
  for (std::size_t i = 0; i < datasets.size(); ++i)
    manifest.datasets.emplace(layout.tensors[i].name, std::move(datasets[i]));
  put_values(manifest.values, task.description.common, "");
  for (std::size_t rank = 0; rank < task.description.own.size(); ++rank)
    put_values(manifest.values, task.description.own[rank], rank_folder(static_cast<int>(rank)) + "/");
  return manifest;
}

std::string pack(const RankReport& report) {
  std::string bytes;
  put(bytes, report.blocks);
  put(bytes, static_cast<std::uint8_t>(report.file.has_value()));
  if (report.file) {
    put(bytes, report.file->bytes);
    put(bytes, report.file->structure_crc32c);
    put(bytes, report.file->offsets);
  }
  put(bytes, core::crc32c(bytes.data(), bytes.size()));
  return bytes;
}

std::optional<RankReport> unpack_report(std::string_view bytes) {
  std::uint32_t checksum = 0;
  if (bytes.size() < sizeof checksum) return {};
  std::memcpy(&checksum, bytes.data() + bytes.size() - sizeof checksum, sizeof checksum);
  bytes.remove_suffix(sizeof checksum);
  if (core::crc32c(bytes.data(), bytes.size()) != checksum) return {};
  PackedBytes from(bytes);
  RankReport report;
  from.take(report.blocks);
  if (from.take<std::uint8_t>() == 0) return report;
  auto& file = report.file.emplace(RankReport::File{});
  from.take(file.bytes);
  from.take(file.structure_crc32c);
  from.take(file.offsets);
  return report;
}

std::vector<RankReport> gather(const mpi::Communicator& comm, const RankReport& mine) {
  std::vector<RankReport> reports;
  for (const auto& report : mpi::gather(comm, pack(mine))) reports.push_back(*unpack_report(report));
  return reports;
}

std::filesystem::path SaveTask::path() const { return replacement.staged() / data_file(file(), layout.files.size()); }

std::vector<core::Range> tensor_ranges(const Layout& layout, std::size_t file) {
  std::vector<core::Range> ranges;
  for_each_piece_in_file(layout.tensors, file, [&](const TensorPlacement& tensor, const StoredPiece& piece) {
    ranges.push_back({piece.offset, piece.offset + piece.elements.size() * tensor.spec.element_bytes()});
  });
  return ranges;
}

void commit(const SaveTask& task, const std::vector<RankReport>& reports) {
  settle_files_of_hooks(task.replacement.staged() / hooks_folder);
  const auto manifest = manifest_of(task, reports);
  if (manifest.files.size() > 1) formats::write_view(task.replacement.staged() / view_file, tensors_of_view(manifest));
  const auto json = to_json(manifest);
  auto file = formats::RawFile::create(task.replacement.staged() / manifest_file);
  file.write_at(0, json.data(), json.size());
  file.sync();
  file.close();
  task.replacement.publish();
}

}  // namespace hortator::checkpoint
