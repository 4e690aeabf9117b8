#include "runtime/identity/ending_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <ctime>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "core/activity/updates.hpp"
#include "runtime/identity/launcher.hpp"

namespace hortator::runtime {
namespace {

constexpr auto status_folder = "status";

// The text of a row around the facts that only the signal's handler knows.
struct PreparedRow {
  std::vector<std::string> folders;  ///< that may have to be made, the outermost first
  std::string file;
  std::string begin;
  int rank = 0;
  pid_t pid = 0;
};

std::atomic<const PreparedRow*> prepared = nullptr;
std::atomic<bool> is_written = false;

bool may_write(const Run& run) { return !run.is_foreign_folder && !run.is_question && !run.id.empty(); }

// Only calls that a signal handler may make.
void write_row(const char* file, int rank, const char* row) {
  const int descriptor = ::open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
  if (descriptor < 0) return;
  [[maybe_unused]] const auto written =
      ::pwrite(descriptor, row, ending_bytes, static_cast<off_t>(rank) * static_cast<off_t>(ending_bytes));
  ::close(descriptor);
}

// A text of a fixed size, built without memory from the heap.
class FixedText {
 public:
  FixedText() { bytes_.fill(' '); }
  FixedText& add(std::string_view text) {
    for (const char c : text) {
      if (size_ < ending_bytes - 1) bytes_[size_++] = c;
    }
    return *this;
  }
  FixedText& add(long number) {
    std::array<char, 24> digits{};
    std::size_t at = digits.size();
    do {
      digits[--at] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number > 0);
    return add(std::string_view(&digits[at], digits.size() - at));
  }
  const char* row() {
    bytes_.back() = '\n';
    return bytes_.data();
  }

 private:
  std::array<char, ending_bytes> bytes_{};
  std::size_t size_ = 0;
};

std::vector<std::string> folders_to(const std::filesystem::path& folder) {
  std::vector<std::string> folders;
  std::filesystem::path path;
  for (const auto& part : folder) {
    path /= part;
    if (path != path.root_path()) folders.push_back(path.string());
  }
  return folders;
}

// The row up to the value of "time".
std::string beginning_of(const Run& run) {
  const auto row = to_row({.run_id = run.id,
                           .reporter = run.rank,
                           .rank = run.rank,
                           .world = run.world_size,
                           .on_host = launcher().local_size.value_or(0),
                           .host = run.host,
                           .pid = getpid()});
  constexpr std::string_view last = "\"time\":";
  return row.substr(0, row.find(last) + last.size());
}

}  // namespace

void write_ending(const Run& run, const EndingRecord& record) {
  if (!may_write(run) || is_written.exchange(true)) return;
  std::error_code ignored;
  std::filesystem::create_directories(run.folder / status_folder, ignored);
  write_row((run.folder / status_folder / endings_file).c_str(), run.rank, to_row(record).c_str());
}

void prepare_signal_ending(const Run& run) {
  // A handler may still read an earlier one.
  static std::mutex mutex;
  static std::vector<std::unique_ptr<PreparedRow>> rows;
  const std::scoped_lock lock(mutex);
  is_written = false;
  if (!may_write(run)) return prepared.store(nullptr);
  const auto folder = run.folder / status_folder;
  rows.push_back(std::make_unique<PreparedRow>(PreparedRow{.folders = folders_to(folder),
                                                           .file = (folder / endings_file).string(),
                                                           .begin = beginning_of(run),
                                                           .rank = run.rank,
                                                           .pid = getpid()}));
  prepared.store(rows.back().get());
}

void write_signal_ending(int signal) {
  const auto* const row = prepared.load();
  // In a forked child the row belongs to its parent.
  if (row == nullptr || row->pid != getpid() || is_written.exchange(true)) return;
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  FixedText text;
  text.add(row->begin).add(now.tv_sec).add(".");
  const long millis = now.tv_nsec / 1'000'000;
  if (millis < 100) text.add("0");
  if (millis < 10) text.add("0");
  text.add(millis).add(R"(,"kind":"signal","type":"","signal":)").add(signal);
  text.add(R"(,"updates":)").add(static_cast<long>(activity::updates()));
  text.add(R"(,"exit_code":)").add(128 + signal).add(R"(,"where":"","problem":""})");
  for (const auto& folder : row->folders) ::mkdir(folder.c_str(), 0777);
  write_row(row->file.c_str(), row->rank, text.row());
}

}  // namespace hortator::runtime
