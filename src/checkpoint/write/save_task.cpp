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

const RankReport::File& file_report(const Layout& layout, const std::vector<RankReport>& reports, std::size_t file) {
  return reports[static_cast<std::size_t>(creator_of(layout, file))].files.at(file / layout.state_files);
}

/// The layout with the offsets that HDF5 chose, for files that were written with MPI-IO.
Layout with_offsets(Layout layout, const std::vector<RankReport>& reports) {
  for (std::size_t index = 0; index < layout.files.size(); ++index) {
    const auto& offsets = file_report(layout, reports, index).offsets;
    if (offsets.empty()) continue;
    std::size_t i = 0;
    for_each_piece_in_file(layout.tensors, index,
                           [&](TensorPlacement&, StoredPiece& piece) { piece.offset = offsets[i++]; });
  }
  return layout;
}

/// Calls `work(tensor, block, elements, checksum)` for each block, or part of one, that a rank has written.
template <typename Work>
void for_each_block(const Layout& layout, int rank, const std::vector<std::uint32_t>& checksums, const Work& work) {
  std::size_t next = 0;
  for (const auto& [tensor, elements] : slices_of_rank(layout, rank)) {
    const auto block = block_bytes / layout.tensors[tensor].spec.element_bytes();
    for (auto i = elements.begin / block; i * block < elements.end; ++i) {
      work(tensor, i, core::Range{std::max(elements.begin, i * block), std::min(elements.end, (i + 1) * block)},
           checksums.at(next++));
    }
  }
}

/// The checksums of what is in each file outside its structure, in file order.
class FileChecksums {
 public:
  explicit FileChecksums(const Layout& layout) : layout_(layout), of_files_(layout.files.size()) {}

  void add(std::size_t tensor, core::Range elements, std::uint32_t checksum) {
    const auto& pieces = layout_.tensors[tensor].pieces;
    const auto piece =
        std::ranges::find_if(pieces, [&](const StoredPiece& one) { return elements.begin < one.elements.end; });
    const auto element = layout_.tensors[tensor].spec.element_bytes();
    of_files_[piece->file][piece->offset + (elements.begin - piece->elements.begin) * element] = {
        .bytes = static_cast<std::size_t>(elements.size() * element), .checksum = checksum};
  }
  std::uint32_t joined(std::size_t file) const {
    std::uint32_t all = 0;
    for (const auto& [offset, part] : of_files_[file]) all = core::crc32c_joined(all, part.checksum, part.bytes);
    return all;
  }

 private:
  struct WrittenRun {
    std::size_t bytes = 0;
    std::uint32_t checksum = 0;
  };
  const Layout& layout_;
  std::vector<std::map<std::int64_t, WrittenRun>> of_files_;  ///< by offset
};

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

// Ranks come in their order: the checksums of a block that several ranks have written are joined from front to back.
std::vector<Manifest::Dataset> datasets_of(const Layout& layout,
                                           const std::vector<std::vector<std::uint32_t>>& checksums) {
  std::vector<Manifest::Dataset> datasets;
  for (const auto& tensor : layout.tensors) {
    const auto blocks = static_cast<std::size_t>((tensor.spec.bytes() + block_bytes - 1) / block_bytes);
    datasets.push_back({.spec = tensor.spec, .pieces = tensor.pieces, .blocks = std::vector<std::uint32_t>(blocks, 0)});
  }
  for (std::size_t rank = 0; rank < checksums.size(); ++rank) {
    for_each_block(layout, static_cast<int>(rank), checksums[rank],
                   [&](std::size_t tensor, std::int64_t block, core::Range elements, std::uint32_t mine) {
                     const auto element = layout.tensors[tensor].spec.element_bytes();
                     auto& checksum = datasets[tensor].blocks.at(static_cast<std::size_t>(block));
                     const bool continues = elements.begin * element > block * block_bytes;
                     const auto bytes = static_cast<std::size_t>(elements.size() * element);
                     checksum = continues ? core::crc32c_joined(checksum, mine, bytes) : mine;
                   });
  }
  return datasets;
}

Manifest manifest_of(const SaveTask& task, const std::vector<RankReport>& reports) {
  const auto layout = with_offsets(task.layout, reports);
  std::vector<std::vector<std::uint32_t>> checksums;
  for (const auto& report : reports) checksums.push_back(report.blocks);
  auto datasets = datasets_of(layout, checksums);
  FileChecksums of_files(layout);
  for (std::size_t rank = 0; rank < reports.size(); ++rank) {
    for_each_block(layout, static_cast<int>(rank), checksums[rank],
                   [&](std::size_t tensor, std::int64_t /*block*/, core::Range elements, std::uint32_t checksum) {
                     of_files.add(tensor, elements, checksum);
                   });
  }

  auto manifest = task.facts;
  manifest.world_size = static_cast<std::int64_t>(reports.size());
  manifest.created = core::utc();
  for (std::size_t i = 0; i < layout.files.size(); ++i) {
    const auto& file = file_report(layout, reports, i);
    manifest.files.push_back({.name = layout.name_of_file(i),
                              .bytes = file.bytes,
                              .structure_crc32c = file.structure_crc32c,
                              .tensors_crc32c = of_files.joined(i)});
  }
  for (std::size_t i = 0; i < datasets.size(); ++i)
    manifest.datasets.emplace(layout.tensors[i].name, std::move(datasets[i]));
  put_values(manifest.values, task.description.common, "");
  for (std::size_t rank = 0; rank < task.description.own.size(); ++rank)
    put_values(manifest.values, task.description.own[rank], rank_folder(static_cast<int>(rank)) + "/");
  if (task.shared) add(manifest, *task.shared);
  return manifest;
}

std::string pack(const RankReport& report) {
  std::string bytes;
  put(bytes, report.blocks);
  put(bytes, static_cast<std::uint8_t>(report.files.size()));
  for (const auto& file : report.files) {
    put(bytes, file.bytes);
    put(bytes, file.structure_crc32c);
    put(bytes, file.offsets);
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
  report.files.resize(from.take<std::uint8_t>());
  for (auto& file : report.files) {
    file.bytes = from.take<std::int64_t>();
    file.structure_crc32c = from.take<std::uint32_t>();
    from.take(file.offsets);
  }
  return report;
}

std::vector<RankReport> gather(const mpi::Communicator& comm, const RankReport& mine) {
  std::vector<RankReport> reports;
  for (const auto& report : mpi::gather(comm, pack(mine))) reports.push_back(*unpack_report(report));
  return reports;
}

std::filesystem::path SaveTask::path(std::size_t file) const {
  return replacement.staged() / layout.name_of_file(file);
}

std::vector<core::Range> tensor_ranges(const Layout& layout, std::size_t file) {
  std::vector<core::Range> ranges;
  for_each_piece_in_file(layout.tensors, file, [&](const TensorPlacement& tensor, const StoredPiece& piece) {
    ranges.push_back({piece.offset, piece.offset + piece.elements.size() * tensor.spec.element_bytes()});
  });
  return ranges;
}

void complete(const std::filesystem::path& folder, const Manifest& manifest, const std::string& json) {
  if (manifest.files.size() > 1) formats::write_view(folder / view_file, tensors_of_view(manifest));
  auto file = formats::RawFile::create(folder / manifest_file);
  file.write_at(0, json.data(), json.size());
  file.sync();
  file.close();
}

void commit(const SaveTask& task, const std::vector<RankReport>& reports) {
  settle_files_of_hooks(task.replacement.staged() / hooks_folder);
  const auto manifest = manifest_of(task, reports);
  complete(task.replacement.staged(), manifest, to_json(manifest));
  task.replacement.publish();
}

}  // namespace hortator::checkpoint
