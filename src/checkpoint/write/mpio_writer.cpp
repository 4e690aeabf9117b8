#include "checkpoint/write/mpio_writer.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <optional>

#include "checkpoint/block_checksums.hpp"
#include "checkpoint/write/gaps.hpp"
#include "core/activity/activity.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"
#include "formats/file/raw_file.hpp"
#include "formats/hdf5/parallel.hpp"
#include "formats/tensor/tensor_slab.hpp"
#include "mpi/agree.hpp"
#include "mpi/environment.hpp"

namespace hortator::checkpoint {
namespace {

void write_slab(const formats::File& file, const Task& task, const Source& source, BlockChecksums& checksums) {
  constexpr std::int64_t max_bytes = std::int64_t{1} << 30;
  const auto& tensor = task.layout.tensors[source.slab.tensor];
  const auto piece = *std::find_if(tensor.pieces.begin(), tensor.pieces.end(),
                                   [&](const Piece& one) { return one.file == task.file(); });
  const auto spec = part_of(tensor.spec, piece);
  auto next = source.slab.elements.begin - piece.elements.begin;
  const auto element = static_cast<std::int64_t>(source.tensor.element_size());
  checksums.begin_slab(source.slab.elements.begin * element);
  const auto most = max_bytes / element;
  formats::for_each_piece(source.tensor, source.in_tensor(), most, [&](const at::Tensor& part) {
    const auto host = formats::ready_to_store(part);
    checksums.add(static_cast<const std::byte*>(host.const_data_ptr()), host.nbytes());
    formats::write_elements(file, tensor.name, spec, {next, next + host.numel()}, host.const_data_ptr());
    next += host.numel();
  });
}

std::uint32_t structure_checksum(const Task& task, const std::vector<std::int64_t>& offsets,
                                 const formats::RawFile& file) {
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

std::vector<std::uint32_t> write_slabs(const formats::File& file, const Task& task) {
  BlockChecksums checksums;
  for (const auto& source : task.sources) write_slab(file, task, source, checksums);
  return checksums.take();
}

Record::File facts_of(const Task& task, const std::vector<std::int64_t>& offsets) {
  formats::sync_folder(task.replacement.staged());
  const auto written = formats::RawFile::open_for_reading(task.path());
  return {.bytes = static_cast<std::int64_t>(written.bytes()),
          .structure = structure_checksum(task, offsets, written),
          .offsets = offsets};
}

std::string words_for(const Task& task, const std::string& problem) {
  return Error({.what = text::concat("the checkpoint ", task.replacement.target().string(),
                                     " was not written: ", task.path(), ": ", problem),
                .why = "other ranks wait for this one inside of HDF5, so the job ends; older checkpoints are whole",
                .hint = "with CheckpointWriter::direct a run survives an error of the disk"})
      .what();
}

}  // namespace

void end_job_at_once(const std::string& problem) {
  log::write_last_line(problem);
  mpi::abort_job(failed_disk_exit_code);
}

// Writing may last, and the watchdog excuses it; what all ranks do together has its time limit like any collective.
Record write_part_together(const mpi::Communicator& comm, const Task& task, const EndJob& end_job) {
  const auto writers = comm.split(static_cast<int>(task.file()), task.rank);
  const EndJob fail = [&](const std::string& problem) {
    if (writers.size() > 1) end_job(words_for(task, problem));
  };
  Record record;
  std::vector<std::int64_t> offsets;
  mpi::Verdict verdict;
  {
    const formats::MpiFileFailures failures(fail);
    std::optional<formats::File> file;  // beyond the catch: closing it would be one more call in which ranks wait
    try {
      {
        const activity::Collective here(writers.membership(), "HDF5 file creation");
        file.emplace(formats::create_file_together(writers, task.path()));
        offsets = write_structure(*file, task.file(), task.layout, task.description);
      }
      record.blocks = write_slabs(*file, task);
      const activity::Collective here(writers.membership(), "HDF5 file closing");
      file->close("write a checkpoint with MPI-IO");
    } catch (const std::exception& error) {
      fail(error.what());
      verdict = mpi::Verdict::of(error);
    }
  }
  mpi::agree(comm, verdict);
  mpi::all_or_none(comm, [&] {
    // Each node flushes what went through it.
    formats::RawFile::open_for_writing(task.path(), formats::visible_within).sync();
    if (task.makes_file()) record.file = facts_of(task, offsets);
  });
  return record;
}

}  // namespace hortator::checkpoint
