#include "checkpoint/memory/file_transfer.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <future>
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

/// Room for two pieces of a file: one on its way, and one that is read or written meanwhile.
class TwoPieces {
 public:
  explicit TwoPieces(std::int64_t bytes) {
    for (auto& piece : pieces_) piece = std::make_unique<std::byte[]>(piece_at(0, bytes));
  }
  std::byte* at(std::int64_t offset) const {
    return pieces_[static_cast<std::size_t>(offset / message_bytes % 2)].get();
  }

 private:
  std::array<std::unique_ptr<std::byte[]>, 2> pieces_;
};

/// Work on files in a thread beside the messages, one at a time.
class FileThread {
 public:
  /// Waits for the work before.
  void start(std::function<void()> work) {
    wait();
    running_ = std::async(std::launch::async, std::move(work));
  }
  void wait() {
    if (running_.valid()) running_.get();
  }

 private:
  std::future<void> running_;  ///< its destructor waits
};

}  // namespace

// While a piece is on its way, the next one is read, and the one before is written.
void pass_on(const mpi::Communicator& comm, int distance, const FileOfRank& mine, const FileOfRank& theirs,
             std::int64_t max_bytes, SteadyWork& work) {
  const int to = (comm.rank() + distance) % comm.size();
  const int from = (comm.rank() - distance + comm.size()) % comm.size();
  const TwoPieces out(max_bytes);
  const TwoPieces in(max_bytes);
  OpenPieces read(work, mine, Direction::read);
  OpenPieces written(work, theirs, Direction::write);
  FileThread files;
  read.move(0, out.at(0));
  for (std::int64_t offset = 0; offset < max_bytes; offset += message_bytes) {
    const auto next = offset + message_bytes;
    const auto before = offset - message_bytes;
    if (max_bytes > message_bytes) {
      files.start([&, next, before] {
        read.move(next, out.at(next));
        if (before >= 0) written.move(before, in.at(before));
      });
    }
    mpi::exchange_bytes(comm, out.at(offset), to, in.at(offset), from, piece_at(offset, max_bytes));
    files.wait();
    if (next >= max_bytes) written.move(offset, in.at(offset));
  }
  written.close();
}

void broadcast_file(const mpi::Communicator& comm, int root, const FileOfRank& file, SteadyWork& work) {
  const bool is_root = comm.rank() == root;
  const TwoPieces pieces(file.bytes);
  OpenPieces opened(work, file, is_root ? Direction::read : Direction::write);
  FileThread files;
  if (is_root) opened.move(0, pieces.at(0));
  for (std::int64_t offset = 0; offset < file.bytes; offset += message_bytes) {
    const auto beside = is_root ? offset + message_bytes : offset - message_bytes;
    if (beside >= 0 && beside < file.bytes) files.start([&, beside] { opened.move(beside, pieces.at(beside)); });
    mpi::broadcast_bytes(comm, pieces.at(offset), piece_at(offset, file.bytes), root);
    files.wait();
    if (!is_root && offset + message_bytes >= file.bytes) opened.move(offset, pieces.at(offset));
  }
  if (!is_root) opened.close();
}

}  // namespace hortator::checkpoint
