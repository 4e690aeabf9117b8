#include "checkpoint/together.hpp"

#include <algorithm>

#include "checkpoint/block_checksums.hpp"
#include "checkpoint/gaps.hpp"
#include "io/hdf5_parallel.hpp"
#include "io/raw_file.hpp"
#include "io/tensor_slab.hpp"

namespace hortator::checkpoint {
namespace {

void write_slab(const io::File& file, const Task& task, const Source& source, BlockChecksums& checksums) {
  constexpr std::int64_t most_bytes = std::int64_t{1} << 30;
  const auto& tensor = task.layout.tensors[source.slab.tensor];
  const auto piece = *std::find_if(tensor.pieces.begin(), tensor.pieces.end(),
                                   [&](const Piece& one) { return one.file == task.file(); });
  const auto spec = part_of(tensor.spec, piece);
  auto next = source.slab.elements.begin - piece.elements.begin;
  const auto element = static_cast<std::int64_t>(source.tensor.element_size());
  checksums.begin_slab(source.slab.elements.begin * element);
  const auto most = most_bytes / element;
  io::for_each_piece(source.tensor, source.in_tensor(), most, [&](const at::Tensor& part) {
    const auto host = io::ready_to_store(part);
    checksums.add(static_cast<const std::byte*>(host.const_data_ptr()), host.nbytes());
    io::write_elements(file, tensor.name, spec, {next, next + host.numel()}, host.const_data_ptr());
    next += host.numel();
  });
}

std::uint32_t structure_checksum(const Task& task, const std::vector<std::int64_t>& offsets, const io::RawFile& file) {
  auto layout = task.layout;
  std::size_t i = 0;
  for (auto& tensor : layout.tensors) {
    for (auto& piece : tensor.pieces) {
      if (piece.file == task.file()) piece.offset = offsets[i++];
    }
  }
  return checksum_between(
      stretches_of(layout, task.file()), static_cast<std::int64_t>(file.bytes()),
      [&](std::int64_t offset, void* data, std::size_t bytes) { file.read_at(offset, data, bytes); });
}

}  // namespace

Record write_part_together(const mpi::Communicator& comm, const Task& task) {
  const auto writers = comm.split(static_cast<int>(task.file()), task.rank);
  auto file = io::create_file_together(writers, task.path());
  const auto offsets = write_structure(file, task.file(), task.layout, task.description);
  BlockChecksums checksums;
  for (const auto& source : task.sources) write_slab(file, task, source, checksums);
  file.close("write a checkpoint with MPI-IO");
  // Each node flushes what went through it.
  io::RawFile::open_for_writing(task.path(), io::visible_within).sync();
  Record record = {.blocks = checksums.take()};
  if (task.makes_file()) {
    io::sync_folder(task.replacement.staged());
    const auto written = io::RawFile::open_for_reading(task.path());
    record.file = {.bytes = static_cast<std::int64_t>(written.bytes()),
                   .structure = structure_checksum(task, offsets, written),
                   .offsets = offsets};
  }
  return record;
}

}  // namespace hortator::checkpoint
