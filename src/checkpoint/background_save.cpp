#include "checkpoint/background_save.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <span>
#include <thread>

#include "base/log.hpp"
#include "base/text.hpp"
#include "checkpoint/format.hpp"
#include "io/raw_file.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"

namespace hortator::checkpoint {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr auto patience_at_exit = 10s;

/// There at once and whole, or not at all.
void put_file(const fs::path& path, const std::string& bytes) {
  auto aside = path;
  aside += ".part";
  auto file = io::RawFile::create(aside);
  file.write_at(0, bytes.data(), bytes.size());
  file.sync();
  file.close();
  io::rename(aside, path);
}

std::optional<Record> read_record(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return {};
  return unpack_record(io::read_text(path, most_manifest_bytes));
}

}  // namespace

/// One save under way, on this rank.
class BackgroundSave::Running {
 public:
  enum class State { writing, written, failed };  ///< of this rank's part

  Running(Task task, int ranks) : task_(std::move(task)), ranks_(ranks), thread_([this] { run(); }) {}
  ~Running() { join(); }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  const Task& task() const { return task_; }
  State state() const { return state_; }
  bool is_done() const { return done_; }
  void give_up() { given_up_ = true; }  ///< another rank's part will never come
  void join() {
    if (thread_.joinable()) thread_.join();
  }
  const mpi::Verdict& verdict() const { return verdict_; }  ///< once it is joined

 private:
  void run() {
    try {
      const auto mine = write_part(task_);
      if (task_.rank != 0) put_file(record_path(task_.rank), pack(mine));
      state_ = State::written;
      if (task_.rank == 0) commit_all(mine);
    } catch (const std::exception& error) {
      verdict_ = {.failed = true, .problem = error.what()};
      if (state_ == State::writing) state_ = State::failed;
    }
    done_ = true;
  }

  void commit_all(const Record& mine) {
    std::vector<Record> records = {mine};
    for (int rank = 1; rank < ranks_; ++rank) {
      auto record = wait_for(rank);
      if (!record) return;
      records.push_back(std::move(*record));
    }
    for (int rank = 1; rank < ranks_; ++rank) fs::remove(record_path(rank));
    commit(task_, records);
  }

  std::optional<Record> wait_for(int rank) const {
    for (auto pause = 1ms; !given_up_; pause = std::min(2 * pause, std::chrono::milliseconds(100))) {
      if (auto record = read_record(record_path(rank))) return record;
      std::this_thread::sleep_for(pause);
    }
    return {};
  }

  fs::path record_path(int rank) const { return task_.replacement.staged() / record_file(rank); }

  Task task_;
  int ranks_;
  std::atomic<State> state_ = State::writing;
  std::atomic<bool> given_up_ = false;
  std::atomic<bool> done_ = false;
  mpi::Verdict verdict_;
  std::thread thread_;
};

BackgroundSave::BackgroundSave() = default;

BackgroundSave::~BackgroundSave() {
  if (!running_) return;
  while (running_->state() == Running::State::writing) std::this_thread::sleep_for(5ms);
  const auto begin = std::chrono::steady_clock::now();
  while (!running_->is_done() && std::chrono::steady_clock::now() - begin < patience_at_exit)
    std::this_thread::sleep_for(5ms);
  running_->give_up();
  running_->join();
  if (running_->verdict().failed)
    log::warn("the checkpoint ", running_->task().replacement.target(),
              " was not saved: ", running_->verdict().problem);
}

fs::path BackgroundSave::start(const mpi::Communicator& comm, const fs::path& folder, const Snapshot& snapshot,
                               const SaveOptions& options) {
  wait(comm);
  auto task = prepare(comm, folder, snapshot, options);
  auto target = task.replacement.target();
  try {
    mpi::all_or_none(comm, [&] { task.sources = staging_.copy(task.sources); });
  } catch (...) {
    if (comm.rank() == 0) task.replacement.abandon();
    throw;
  }
  running_ = std::make_unique<Running>(std::move(task), comm.size());
  return target;
}

void BackgroundSave::wait(const mpi::Communicator& comm) {
  if (!running_) return;
  // Looks at all ranks again and again, so that none waits for a part that will never come.
  std::array<int, 2> worst{};  // is any writing, has any failed
  do {
    const auto state = running_->state();
    worst = {state == Running::State::writing, state == Running::State::failed};
    mpi::all_reduce(comm, std::span<int>(worst), MPI_MAX);
    if (worst[0] != 0 && worst[1] == 0) std::this_thread::sleep_for(2ms);
  } while (worst[0] != 0 && worst[1] == 0);
  if (worst[1] != 0) running_->give_up();
  running_->join();
  const auto ended = std::move(running_);
  try {
    mpi::agree(comm, ended->verdict());
  } catch (...) {
    // All ranks are here, and none writes any more.
    if (comm.rank() == 0) ended->task().replacement.abandon();
    throw;
  }
}

}  // namespace hortator::checkpoint
