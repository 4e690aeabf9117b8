#include "checkpoint/write/mpio_writer.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <optional>

#include "checkpoint/gap_checksum.hpp"
#include "checkpoint/write/direct_writer.hpp"
#include "core/activity/activity.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"
#include "formats/file/raw_file.hpp"
#include "formats/hdf5/parallel.hpp"
#include "formats/tensor/tensor_ranges.hpp"
#include "mpi/agree.hpp"
#include "mpi/environment.hpp"

namespace hortator::checkpoint {
namespace {

void write_slice(const formats::File& file, const SaveTask& task, const TensorSource& source,
                 BlockChecksums& checksums) {
  constexpr std::int64_t max_bytes = std::int64_t{1} << 30;
  const auto& tensor = task.layout.tensors[source.slice.tensor];
  const auto piece =
      *std::ranges::find_if(tensor.pieces, [&](const StoredPiece& one) { return one.file == task.file(); });
  const auto spec = stored_spec(tensor.spec, piece);
  auto next = source.slice.elements.begin - piece.elements.begin;
  const auto element = static_cast<std::int64_t>(source.tensor.element_size());
  checksums.begin_slice(source.slice.elements.begin * element);
  const auto max_elements = max_bytes / element;
  formats::for_each_piece(source.tensor, source.in_tensor(), max_elements, [&](const at::Tensor& part) {
    const auto host = formats::ready_to_store(part);
    checksums.add(static_cast<const std::byte*>(host.const_data_ptr()), host.nbytes());
    formats::write_elements(file, tensor.name, spec, {next, next + host.numel()}, host.const_data_ptr());
    next += host.numel();
  });
}

std::uint32_t structure_checksum(const SaveTask& task, const std::vector<std::int64_t>& offsets,
                                 const formats::RawFile& file) {
  auto layout = task.layout;
  std::size_t i = 0;
  for (auto& tensor : layout.tensors) {
    for (auto& piece : tensor.pieces) {
      if (piece.file == task.file()) piece.offset = offsets[i++];
    }
  }
  return gap_checksum(tensor_ranges(layout, task.file()), static_cast<std::int64_t>(file.bytes()),
                      [&](std::int64_t offset, void* data, std::size_t bytes) { file.read_at(offset, data, bytes); });
}

std::vector<std::uint32_t> write_slices(const formats::File& file, const SaveTask& task) {
  BlockChecksums checksums;
  for (const auto& source : task.sources) write_slice(file, task, source, checksums);
  return checksums.take();
}

RankReport::File facts_of(const SaveTask& task, const std::vector<std::int64_t>& offsets) {
  formats::sync_folder(task.replacement.staged());
  const auto written = formats::RawFile::open_for_reading(task.path(task.file()));
  return {.bytes = static_cast<std::int64_t>(written.bytes()),
          .structure_crc32c = structure_checksum(task, offsets, written),
          .offsets = offsets};
}

std::string message_for(const SaveTask& task, const std::string& problem) {
  return Error({.what = text::concat("The checkpoint ", task.replacement.target().string(),
                                     " was not written: ", task.path(task.file()), ": ", problem),
                .why = "other ranks wait for this one inside HDF5, so the job ends; older checkpoints are intact",
                .hint = "use CheckpointWriter::direct, with which a run survives disk errors"})
      .what();
}

}  // namespace

void end_job_at_once(const std::string& problem) {
  log::write_last_line(problem);
  mpi::abort_job(failed_disk_exit_code);
}

// The watchdog allows independent writes to take long. Collective calls have the time limit of any collective.
RankReport write_part_with_mpio(const mpi::Communicator& comm, const SaveTask& task, const EndJob& end_job) {
  const auto writers = comm.split(static_cast<int>(task.file()), task.rank);
  const EndJob fail = [&](const std::string& problem) {
    if (writers.size() > 1) end_job(message_for(task, problem));
  };
  RankReport report;
  std::vector<std::int64_t> offsets;
  mpi::LocalOutcome verdict;
  {
    const formats::MpiFileFailures failures(fail);
    std::optional<formats::File>
        file;  // outlives the catch block: closing the file is one more call in which ranks wait
    try {
      {
        const activity::Collective here(writers.membership(), "HDF5 file creation");
        file.emplace(formats::create_file_together(writers, task.path(task.file())));
        offsets = write_hdf5_structure(*file, task.file(), task.layout, task.description);
      }
      report.blocks = write_slices(*file, task);
      const activity::Collective here(writers.membership(), "HDF5 file closing");
      file->close("write a checkpoint with MPI-IO");
    } catch (const std::exception& error) {
      fail(error.what());
      verdict = mpi::LocalOutcome::of(error);
    }
  }
  mpi::agree(comm, verdict);
  mpi::all_or_none(comm, [&] {
    // Each node flushes what was written through it.
    formats::RawFile::open_for_writing(task.path(task.file()), formats::visible_within()).sync();
    if (task.makes_files()) report.files = {facts_of(task, offsets)};
  });
  return report;
}

}  // namespace hortator::checkpoint
