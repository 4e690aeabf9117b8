#include "bench/files/disk.hpp"

#include <algorithm>

#include "core/range.hpp"
#include "formats/file/raw_file.hpp"
#include "mpi/collectives.hpp"

namespace hortator::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t piece_bytes = std::int64_t{8} << 20;

}  // namespace

Scratch::Scratch(const mpi::Communicator& comm, const fs::path& below) : comm_(comm), path_(below / "scratch") {
  make_empty();
}

Scratch::~Scratch() {
  try {
    remove();
  } catch (const std::exception&) {  // files that remain are visible to the user
  }
}

void Scratch::make_empty() const {
  remove();
  if (comm_.rank() == 0) fs::create_directories(path_);
  mpi::barrier(comm_);
}

void Scratch::remove() const {
  mpi::barrier(comm_);
  if (comm_.rank() == 0) fs::remove_all(path_);
}

std::int64_t bytes_of(const std::vector<at::Tensor>& tensors) {
  std::int64_t bytes = 0;
  for (const auto& tensor : tensors) bytes += static_cast<std::int64_t>(tensor.nbytes());
  return bytes;
}

void write_raw(const mpi::Communicator& comm, const fs::path& path, const std::vector<at::Tensor>& tensors) {
  auto aside = path;
  aside += ".new";
  if (comm.rank() == 0) formats::RawFile::create(aside).close();
  mpi::barrier(comm);
  auto file = formats::RawFile::open_for_writing(aside);
  const auto share = core::aligned(bytes_of(tensors), comm.size(), comm.rank(), 4096);
  std::int64_t begin = 0;
  for (const auto& tensor : tensors) {
    const auto end = begin + static_cast<std::int64_t>(tensor.nbytes());
    const auto* data = static_cast<const std::byte*>(tensor.const_data_ptr());
    for (auto next = std::max(begin, share.begin); next < std::min(end, share.end); next += piece_bytes) {
      const auto bytes = std::min(piece_bytes, std::min(end, share.end) - next);
      file.write_at(next, data + (next - begin), static_cast<std::size_t>(bytes));
    }
    begin = end;
  }
  file.sync();
  file.close();
  mpi::barrier(comm);
  if (comm.rank() == 0) formats::rename(aside, path);
  mpi::barrier(comm);
}

void read_raw(const fs::path& path, const std::vector<at::Tensor>& tensors) {
  const auto file = formats::RawFile::open_for_reading(path);
  std::int64_t offset = 0;
  for (const auto& tensor : tensors) {
    auto* data = static_cast<std::byte*>(tensor.mutable_data_ptr());
    const auto bytes = static_cast<std::int64_t>(tensor.nbytes());
    for (std::int64_t done = 0; done < bytes; done += piece_bytes)
      file.read_at(offset + done, data + done, static_cast<std::size_t>(std::min(piece_bytes, bytes - done)));
    offset += bytes;
  }
}

void forget_cached(const mpi::Communicator& comm, const std::vector<fs::path>& paths) {
  if (comm.rank() != 0) return;
  for (const auto& path : paths) {
    if (!fs::is_directory(path)) {
      formats::RawFile::open_for_reading(path).forget_cached();
      continue;
    }
    for (const auto& entry : fs::directory_iterator(path))
      formats::RawFile::open_for_reading(entry.path()).forget_cached();
  }
}

PairedTiming time_disk(const mpi::Communicator& comm, const Sides& sides, int blocks) {
  const auto block = [&](const std::function<void()>& step) {
    sides.line_up();
    mpi::barrier(comm);
    const double begin = seconds_now();
    step();
    mpi::barrier(comm);
    return seconds_now() - begin;
  };
  block(sides.reference);
  block(sides.ours);
  std::vector<double> ours;
  std::vector<double> reference;
  for (int pair = 0; pair < blocks; ++pair) {
    if (pair % 2 == 0) ours.push_back(block(sides.ours));
    reference.push_back(block(sides.reference));
    if (pair % 2 == 1) ours.push_back(block(sides.ours));
  }
  return summarize(ours, reference);
}

}  // namespace hortator::bench
