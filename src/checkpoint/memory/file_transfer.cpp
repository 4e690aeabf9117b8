#include "checkpoint/memory/file_transfer.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>

#include "formats/file/raw_file.hpp"
#include "mpi/collectives.hpp"

namespace hortator::checkpoint {
namespace {

constexpr std::int64_t message_bytes = std::int64_t{1} << 23;

enum class Direction { read, write };

formats::RawFile opened_for_writing(const FileOfRank& file) {
  if (!std::filesystem::exists(file.path)) return formats::RawFile::create(file.path);
  auto opened = formats::RawFile::open_for_writing(file.path);
  opened.resize(static_cast<std::uint64_t>(file.bytes));
  return opened;
}

/// A file that is read or written front to back.
class OpenPieces {
 public:
  OpenPieces(SteadyWork& work, const FileOfRank& file, Direction direction)
      : work_(work), bytes_(file.bytes), direction_(direction) {
    if (file.path.empty()) return;
    work_.run([&] {
      file_.emplace(direction == Direction::write ? opened_for_writing(file)
                                                  : formats::RawFile::open_for_reading(file.path));
    });
  }

  void move(std::int64_t offset, std::byte* data) {
    const auto count = static_cast<std::size_t>(std::clamp<std::int64_t>(bytes_ - offset, 0, message_bytes));
    if (!file_ || count == 0) return;
    work_.run([&] {
      direction_ == Direction::write ? file_->write_at(offset, data, count) : file_->read_at(offset, data, count);
    });
  }

  void close() {
    if (!file_) return;
    work_.run([&] {
      file_->sync();  // of no cost in memory
      file_->close();
    });
  }

 private:
  SteadyWork& work_;
  std::int64_t bytes_;
  Direction direction_;
  std::optional<formats::RawFile> file_;
};

std::size_t piece_at(std::int64_t offset, std::int64_t bytes) {
  return static_cast<std::size_t>(std::min(message_bytes, bytes - offset));
}

std::unique_ptr<std::byte[]> buffer_for(std::int64_t bytes) {
  return std::make_unique<std::byte[]>(static_cast<std::size_t>(std::min(message_bytes, bytes)));
}

}  // namespace

void pass_on(const mpi::Communicator& comm, int distance, const FileOfRank& mine, const FileOfRank& theirs,
             std::int64_t max_bytes, SteadyWork& work) {
  const int to = (comm.rank() + distance) % comm.size();
  const int from = (comm.rank() - distance + comm.size()) % comm.size();
  const auto out = buffer_for(max_bytes);
  const auto in = buffer_for(max_bytes);
  OpenPieces read(work, mine, Direction::read);
  OpenPieces written(work, theirs, Direction::write);
  for (std::int64_t offset = 0; offset < max_bytes; offset += message_bytes) {
    read.move(offset, out.get());
    mpi::exchange_bytes(comm, out.get(), to, in.get(), from, piece_at(offset, max_bytes));
    written.move(offset, in.get());
  }
  written.close();
}

void broadcast_file(const mpi::Communicator& comm, int root, const FileOfRank& file, SteadyWork& work) {
  const auto buffer = buffer_for(file.bytes);
  OpenPieces pieces(work, file, comm.rank() == root ? Direction::read : Direction::write);
  for (std::int64_t offset = 0; offset < file.bytes; offset += message_bytes) {
    if (comm.rank() == root) pieces.move(offset, buffer.get());
    mpi::broadcast_bytes(comm, buffer.get(), piece_at(offset, file.bytes), root);
    if (comm.rank() != root) pieces.move(offset, buffer.get());
  }
  if (comm.rank() != root) pieces.close();
}

}  // namespace hortator::checkpoint
