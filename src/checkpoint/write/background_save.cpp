#include "checkpoint/write/background_save.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <span>
#include <system_error>
#include <thread>
#include <utility>

#include "checkpoint/format.hpp"
#include "checkpoint/write/save.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"
#include "formats/file/raw_file.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"

namespace hortator::checkpoint {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr auto wait_at_exit = 10s;
// A failing job must end within two seconds.
constexpr auto wait_while_failing = 300ms;
constexpr auto wait_after_cancel = 100ms;

/// Thrown in the thread when the save was cancelled. Not an error of its own.
struct Cancelled {};

template <typename Work>
std::thread begin_thread(const Work& work) {
  try {
    return std::thread(work);
  } catch (const std::system_error& error) {
    throw Error({.what = text::concat("No thread can be started to write a checkpoint: ", error.what()),
                 .why = "CheckpointOptions::asynchronous needs one on each rank",
                 .hint = "raise the limit of processes (ulimit -u, or the job's), or turn it off"});
  }
}

/// Writes a file that becomes visible complete or not at all.
void put_file(const fs::path& path, const std::string& bytes) {
  auto partial = path;
  partial += ".part";
  auto file = formats::RawFile::create(partial);
  file.write_at(0, bytes.data(), bytes.size());
  file.sync();
  file.close();
  formats::rename(partial, path);
}

std::optional<RankReport> read_report(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return {};
  return unpack_report(formats::read_text(path, max_manifest_bytes));
}

}  // namespace

/// This rank's side of a save in progress.
class BackgroundSave::Running {
 public:
  enum class PartState { writing, written, failed };  ///< of this rank's part

  /// `memory` holds the elements of the task's sources.
  Running(SaveTask task, StagingMemory memory, int ranks, Clock::time_point begun)
      : task_(std::move(task)),
        memory_(std::move(memory)),
        ranks_(ranks),
        begun_(begun),
        thread_(begin_thread([this] { run(); })) {}
  ~Running() { join(); }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  const SaveTask& task() const { return task_; }
  PartState state() const { return state_; }
  bool is_done() const { return done_; }
  void cancel() {
    is_cancelled_ = true;
  }  ///< the thread ends at the next check; called if another rank failed or the save is not wanted any more
  bool wait_until_done(Clock::duration limit) const {
    const auto begin = Clock::now();
    while (!done_ && Clock::now() - begin < limit) std::this_thread::sleep_for(5ms);
    return done_;
  }
  void join() {
    if (thread_.joinable()) thread_.join();
  }
  Clock::time_point begun() const { return begun_; }
  std::optional<Clock::duration> took() const {  ///< on rank 0, once the checkpoint is complete
    const auto ticks = took_.load();
    return ticks > 0 ? std::optional(Clock::duration(ticks)) : std::nullopt;
  }
  bool is_noted() const { return is_noted_; }  ///< that it is complete
  void note() { is_noted_ = true; }
  const RankReport& report() const { return mine_; }  ///< valid once its part is written
  /// Gives rank 0's thread the reports of all ranks, once all parts are written. It then stops waiting for the report
  /// files, which may have been removed.
  void hand_over(std::vector<RankReport> reports) {
    reports_ = std::move(reports);
    has_reports_ = true;
  }
  const mpi::LocalOutcome& verdict() const { return verdict_; }  ///< valid once the thread is joined

 private:
  void run() {
    try {
      mine_ = write_part(task_, [this](std::int64_t /*bytes*/) { throw_if_cancelled(); });
      throw_if_cancelled();
      if (task_.rank != 0) put_file(report_path(task_.rank), pack(mine_));
      state_ = PartState::written;
      if (task_.rank == 0) commit_all();
    } catch (const Cancelled&) {
      if (state_ == PartState::writing) state_ = PartState::failed;
    } catch (const std::exception& error) {
      verdict_ = mpi::LocalOutcome::of(error);
      if (state_ == PartState::writing) state_ = PartState::failed;
    }
    done_ = true;
  }

  void throw_if_cancelled() const {
    if (is_cancelled_) throw Cancelled();
  }

  void commit_all() {
    std::vector<RankReport> reports = {mine_};
    for (int rank = 1; rank < ranks_; ++rank) reports.push_back(wait_for(rank));
    for (int rank = 1; rank < ranks_; ++rank) fs::remove(report_path(rank));
    throw_if_cancelled();
    commit(task_, reports);
    took_ = std::max<Clock::rep>((Clock::now() - begun_).count(), 1);
  }

  RankReport wait_for(int rank) const {
    for (auto pause = 1ms;; pause = std::min(2 * pause, std::chrono::milliseconds(100))) {
      throw_if_cancelled();
      if (has_reports_) return reports_[static_cast<std::size_t>(rank)];
      if (auto report = read_report(report_path(rank))) return *report;
      std::this_thread::sleep_for(pause);
    }
  }

  fs::path report_path(int rank) const { return task_.replacement.staged() / report_file(rank); }

  SaveTask task_;
  StagingMemory memory_;
  int ranks_;
  Clock::time_point begun_;
  RankReport mine_;
  std::vector<RankReport> reports_;  ///< of all ranks, from hand_over()
  std::atomic<bool> has_reports_ = false;
  std::atomic<Clock::rep> took_ = 0;
  std::atomic<PartState> state_ = PartState::writing;
  std::atomic<bool> is_cancelled_ = false;
  std::atomic<bool> done_ = false;
  bool is_noted_ = false;
  mpi::LocalOutcome verdict_;
  std::thread thread_;
};

BackgroundSave::BackgroundSave() = default;

BackgroundSave::~BackgroundSave() {
  if (!running_) return;
  if (std::uncaught_exceptions() == 0) {
    while (running_->state() == Running::PartState::writing) std::this_thread::sleep_for(5ms);
    running_->wait_until_done(wait_at_exit);
    running_->cancel();
  } else if (!ends_soon()) {
    static_cast<void>(running_.release());
    return;
  }
  running_->join();
  if (running_->verdict().failed)
    log::warn("The checkpoint ", running_->task().replacement.target(),
              " was not saved: ", running_->verdict().problem);
}

// An exception is passing through: the job is about to end, or the program handles it. Neither should wait for a disk.
bool BackgroundSave::ends_soon() {
  if (running_->wait_until_done(wait_while_failing)) return true;
  running_->cancel();
  log::warn("The checkpoint ", running_->task().replacement.target(),
            " was still being written when the program failed, and is abandoned");
  return running_->wait_until_done(wait_after_cancel);
}

std::optional<BackgroundSave::Clock::duration> BackgroundSave::longest() const {
  return running_ ? std::max(longest_, running_->took()) : longest_;
}

void BackgroundSave::note_completed(Running& save) {
  if (!save.took() || save.is_noted()) return;
  save.note();
  completed_.push_back(save.task().replacement.target());
}

std::vector<fs::path> BackgroundSave::take_completed() {
  if (running_) note_completed(*running_);
  return std::exchange(completed_, {});
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
    if (running_) running_->cancel();
    running_.reset();
    mpi::barrier(comm);  // no rank writes any more
    if (comm.rank() == 0) replacement.abandon();
    throw;
  }
  return replacement.target();
}

void BackgroundSave::wait(const mpi::Communicator& comm) {
  if (!running_) return;
  // Polls the state of all ranks, so that no rank waits for the part of one that has failed.
  std::array<int, 3> worst{};  // whether any rank is writing, any has failed, and the commit is pending
  do {
    const auto state = running_->state();
    worst = {state == Running::PartState::writing, state == Running::PartState::failed,
             comm.rank() == 0 && !running_->is_done()};
    mpi::all_reduce(comm, std::span<int>(worst), mpi::Op::max);
    if (worst[0] != 0 && worst[1] == 0) std::this_thread::sleep_for(2ms);
  } while (worst[0] != 0 && worst[1] == 0);
  if (worst[1] != 0) {
    running_->cancel();
  } else if (worst[2] != 0) {
    auto reports = gather(comm, running_->report());
    if (comm.rank() == 0) running_->hand_over(std::move(reports));
  }
  running_->join();
  longest_ = longest();
  note_completed(*running_);
  const auto ended = std::move(running_);
  try {
    mpi::agree(comm, ended->verdict());
  } catch (...) {
    // All ranks are here, so no rank writes any more.
    if (comm.rank() == 0) ended->task().replacement.abandon();
    throw;
  }
}

}  // namespace hortator::checkpoint
