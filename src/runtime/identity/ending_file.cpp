#include "runtime/identity/ending_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <ctime>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "core/activity/updates.hpp"
#include "runtime/identity/fixed_text.hpp"
#include "runtime/identity/flight_record.hpp"
#include "runtime/identity/launcher.hpp"

namespace hortator::runtime {
namespace {

constexpr auto status_folder = "status";

// The text of a row around the facts that only the signal's handler knows.
struct PreparedRow {
  std::vector<std::string> folders;  ///< that may have to be made, the outermost first
  std::string file;
  std::string flight_file;
  std::string begin;
  int rank = 0;
  pid_t pid = 0;
};

std::atomic<const PreparedRow*> prepared = nullptr;
std::atomic<bool> is_written = false;

bool may_write(const Run& run) { return !run.is_foreign_folder && !run.is_question && !run.id.empty(); }

// Writes a rank's part of a file of parts of equal length. Only calls that a signal handler may make.
void write_part(const char* file, int rank, std::string_view part) {
  const int descriptor = ::open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
  if (descriptor < 0) return;
  [[maybe_unused]] const auto written =
      ::pwrite(descriptor, part.data(), part.size(), static_cast<off_t>(rank) * static_cast<off_t>(part.size()));
  ::close(descriptor);
}

// Only calls that a signal handler may make.
void write_flight_of(const PreparedRow& row) {
  activity::FlightLog flight;
  activity::read_flight(flight);
  if (flight.count == 0) return;
  std::array<char, flight_block_bytes> block;
  for (std::size_t i = 0; i < activity::flight_length; ++i) {
    auto line = i < flight.count ? flight_row(row.rank, flight.entries[i]) : FlightRow();
    std::ranges::copy(line.row(), block.begin() + static_cast<std::ptrdiff_t>(i * flight_row_bytes));
  }
  for (const auto& folder : row.folders) ::mkdir(folder.c_str(), 0777);
  write_part(row.flight_file.c_str(), row.rank, {block.data(), block.size()});
}

// In a forked child the rows belong to its parent.
const PreparedRow* own_row() {
  const auto* const row = prepared.load();
  return row != nullptr && row->pid == getpid() ? row : nullptr;
}

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
  write_part((run.folder / status_folder / endings_file).c_str(), run.rank, to_row(record));
  write_flight();
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
                                                           .flight_file = (folder / flight_file).string(),
                                                           .begin = beginning_of(run),
                                                           .rank = run.rank,
                                                           .pid = getpid()}));
  prepared.store(rows.back().get());
}

void write_signal_ending(int signal) {
  const auto* const row = own_row();
  if (row == nullptr || is_written.exchange(true)) return;
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  FixedText<ending_bytes> text;
  text.add(row->begin).add_seconds(static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec), 3);
  text.add(R"(,"kind":"signal","type":"","signal":)").add(static_cast<std::uint64_t>(signal));
  text.add(R"(,"updates":)").add(static_cast<std::uint64_t>(activity::updates()));
  text.add(R"(,"exit_code":)").add(static_cast<std::uint64_t>(128 + signal));
  text.add(R"(,"where":"","problem":""})");
  for (const auto& folder : row->folders) ::mkdir(folder.c_str(), 0777);
  write_part(row->file.c_str(), row->rank, text.row());
  write_flight_of(*row);
}

void write_flight() {
  if (const auto* const row = own_row()) write_flight_of(*row);
}

}  // namespace hortator::runtime
