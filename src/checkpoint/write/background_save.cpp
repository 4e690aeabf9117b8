#include "checkpoint/write/background_save.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <span>
#include <system_error>
#include <thread>

#include "checkpoint/format.hpp"
#include "checkpoint/write/progress.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"
#include "formats/file/raw_file.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"

namespace hortator::checkpoint {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr auto patience_at_exit = 10s;
// A job that fails is over within two seconds.
constexpr auto patience_while_failing = 300ms;
constexpr auto patience_with_the_given_up = 100ms;

/// The save has no more use: no error of its own.
struct GivenUp {};

template <typename Work>
std::thread begin_thread(const Work& work) {
  try {
    return std::thread(work);
  } catch (const std::system_error& error) {
    throw Error(
        {.what = text::concat("no thread can be started to write a checkpoint: ", error.what()),
         .why = "CheckpointOptions::asynchronous needs one on each rank",
         .hint = "raise the number of processes that are allowed (ulimit -u, or the job's), or save without it"});
  }
}

/// There at once and whole, or not at all.
void put_file(const fs::path& path, const std::string& bytes) {
  auto aside = path;
  aside += ".part";
  auto file = formats::RawFile::create(aside);
  file.write_at(0, bytes.data(), bytes.size());
  file.sync();
  file.close();
  formats::rename(aside, path);
}

std::optional<Record> read_record(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return {};
  return unpack_record(formats::read_text(path, max_manifest_bytes));
}

}  // namespace

/// One save under way, on this rank.
class BackgroundSave::Running {
 public:
  enum class State { writing, written, failed };  ///< of this rank's part

  /// `memory` is where the task's sources lie.
  Running(Task task, Staging memory, int ranks, Clock::time_point begun)
      : task_(std::move(task)),
        memory_(std::move(memory)),
        ranks_(ranks),
        begun_(begun),
        thread_(begin_thread([this] { run(); })) {}
  ~Running() { join(); }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  const Task& task() const { return task_; }
  State state() const { return state_; }
  bool is_done() const { return done_; }
  void give_up() { given_up_ = true; }  ///< another rank's part will never come, or nobody wants this one
  bool wait_until_done(Clock::duration patience) const {
    const auto begin = Clock::now();
    while (!done_ && Clock::now() - begin < patience) std::this_thread::sleep_for(5ms);
    return done_;
  }
  void join() {
    if (thread_.joinable()) thread_.join();
  }
  Clock::time_point begun() const { return begun_; }
  std::optional<Clock::duration> took() const {  ///< on rank 0, once it is there
    const auto ticks = took_.load();
    return ticks > 0 ? std::optional(Clock::duration(ticks)) : std::nullopt;
  }
  const Record& record() const { return mine_; }  ///< once its part is written
  /// To rank 0's, when all are written: it waits no longer for what they tell by files, which somebody may have
  /// removed.
  void hand_over(std::vector<Record> records) {
    told_ = std::move(records);
    is_told_ = true;
  }
  const mpi::Verdict& verdict() const { return verdict_; }  ///< once it is joined

 private:
  void run() {
    try {
      mine_ = write_part(task_, [this](std::int64_t /*bytes*/) { go_on_if_wanted(); });
      go_on_if_wanted();
      if (task_.rank != 0) put_file(record_path(task_.rank), pack(mine_));
      state_ = State::written;
      if (task_.rank == 0) commit_all();
    } catch (const GivenUp&) {
      if (state_ == State::writing) state_ = State::failed;
    } catch (const std::exception& error) {
      verdict_ = mpi::Verdict::of(error);
      if (state_ == State::writing) state_ = State::failed;
    }
    done_ = true;
  }

  void go_on_if_wanted() const {
    if (given_up_) throw GivenUp();
  }

  void commit_all() {
    std::vector<Record> records = {mine_};
    for (int rank = 1; rank < ranks_; ++rank) records.push_back(wait_for(rank));
    for (int rank = 1; rank < ranks_; ++rank) fs::remove(record_path(rank));
    go_on_if_wanted();
    commit(task_, records);
    took_ = std::max<Clock::rep>((Clock::now() - begun_).count(), 1);
  }

  Record wait_for(int rank) const {
    for (auto pause = 1ms;; pause = std::min(2 * pause, std::chrono::milliseconds(100))) {
      go_on_if_wanted();
      if (is_told_) return told_[static_cast<std::size_t>(rank)];
      if (auto record = read_record(record_path(rank))) return *record;
      std::this_thread::sleep_for(pause);
    }
  }

  fs::path record_path(int rank) const { return task_.replacement.staged() / record_file(rank); }

  Task task_;
  Staging memory_;
  int ranks_;
  Clock::time_point begun_;
  Record mine_;
  std::vector<Record> told_;  ///< by the other ranks
  std::atomic<bool> is_told_ = false;
  std::atomic<Clock::rep> took_ = 0;
  std::atomic<State> state_ = State::writing;
  std::atomic<bool> given_up_ = false;
  std::atomic<bool> done_ = false;
  mpi::Verdict verdict_;
  std::thread thread_;
};

BackgroundSave::BackgroundSave() = default;

BackgroundSave::~BackgroundSave() {
  if (!running_) return;
  if (std::uncaught_exceptions() == 0) {
    while (running_->state() == Running::State::writing) std::this_thread::sleep_for(5ms);
    running_->wait_until_done(patience_at_exit);
    running_->give_up();
  } else if (!ends_soon()) {
    static_cast<void>(running_.release());
    return;
  }
  running_->join();
  if (running_->verdict().failed)
    log::warn("the checkpoint ", running_->task().replacement.target(),
              " was not saved: ", running_->verdict().problem);
}

// The job is about to end, or the program to go on in its own way: neither waits for a disk.
bool BackgroundSave::ends_soon() {
  if (running_->wait_until_done(patience_while_failing)) return true;
  running_->give_up();
  log::warn("the checkpoint ", running_->task().replacement.target(),
            " was still being written when the program failed, and is given up");
  return running_->wait_until_done(patience_with_the_given_up);
}

std::optional<BackgroundSave::Clock::duration> BackgroundSave::longest() const {
  return running_ ? std::max(longest_, running_->took()) : longest_;
}

std::optional<BackgroundSave::Clock::duration> BackgroundSave::under_way_for() const {
  if (!running_ || running_->is_done()) return {};
  return Clock::now() - running_->begun();
}

fs::path BackgroundSave::start(const mpi::Communicator& comm, const fs::path& folder, const Snapshot& snapshot,
                               const SaveOptions& options) {
  wait(comm);
  const auto begun = Clock::now();
  auto task = prepare(comm, folder, snapshot, options);
  const auto replacement = task.replacement;
  try {
    mpi::all_or_none(comm, [&] {
      task.sources = staging_.copy(task.sources);
      running_ = std::make_unique<Running>(std::move(task), staging_, comm.size(), begun);
    });
  } catch (...) {
    if (running_) running_->give_up();
    running_.reset();
    mpi::barrier(comm);  // none writes any more
    if (comm.rank() == 0) replacement.abandon();
    throw;
  }
  return replacement.target();
}

void BackgroundSave::wait(const mpi::Communicator& comm) {
  if (!running_) return;
  // Looks at all ranks again and again, so that none waits for a part that will never come.
  std::array<int, 3> worst{};  // is any writing, has any failed, is it still to be put in place
  do {
    const auto state = running_->state();
    worst = {state == Running::State::writing, state == Running::State::failed,
             comm.rank() == 0 && !running_->is_done()};
    mpi::all_reduce(comm, std::span<int>(worst), MPI_MAX);
    if (worst[0] != 0 && worst[1] == 0) std::this_thread::sleep_for(2ms);
  } while (worst[0] != 0 && worst[1] == 0);
  if (worst[1] != 0) {
    running_->give_up();
  } else if (worst[2] != 0) {
    auto records = gather(comm, running_->record());
    if (comm.rank() == 0) running_->hand_over(std::move(records));
  }
  running_->join();
  longest_ = longest();
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
