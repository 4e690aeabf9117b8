#include "observe/trackers/event_cut.hpp"

#include <cstring>
#include <vector>

#include "observe/trackers/event.hpp"
#include "observe/trackers/log_file.hpp"

namespace hortator::observe {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view aside_prefix = "events.out.oldevents.";

// A record: the length in eight bytes, its checksum, the event, its checksum.
constexpr std::size_t frame_head = 12;
constexpr std::size_t frame_tail = 4;

std::vector<fs::path> event_files_with(const fs::path& folder, std::string_view prefix) {
  std::vector<fs::path> found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    if (entry.path().filename().string().starts_with(prefix)) found.push_back(entry.path());
  }
  return found;
}

}  // namespace

std::optional<std::int64_t> step_of_event(std::string_view event) {
  constexpr std::size_t time_bytes = 9;  // the tag and a double
  constexpr char step_tag = 0x10;
  if (event.size() <= time_bytes || event[time_bytes] != step_tag) return {};
  std::uint64_t step = 0;
  int shift = 0;
  for (std::size_t i = time_bytes + 1; i < event.size() && shift < 64; ++i, shift += 7) {
    const auto byte = static_cast<unsigned char>(event[i]);
    step |= static_cast<std::uint64_t>(byte & 127) << shift;
    if (byte < 128) return static_cast<std::int64_t>(step);
  }
  return {};
}

std::string without_later(std::string_view records, std::int64_t last_step) {
  std::string kept;
  while (records.size() >= frame_head) {
    std::uint64_t length = 0;
    std::memcpy(&length, records.data(), sizeof length);
    if (length > records.size() - frame_head || records.size() - frame_head - length < frame_tail) break;
    const auto step = step_of_event(records.substr(frame_head, length));
    const auto whole = frame_head + length + frame_tail;
    if (!step || *step <= last_step) kept += records.substr(0, whole);
    records.remove_prefix(whole);
  }
  return kept;
}

void cut_events(const fs::path& folder, std::int64_t last_step) {
  for (const auto& file : event_files_with(folder, event_file_prefix)) {
    const auto records = content_of(file);
    const auto kept = without_later(records, last_step);
    if (kept != records) replace_log(file, file.parent_path() / ".cut", kept);
  }
}

void put_events_aside(const fs::path& folder) {
  const auto files = event_files_with(folder, event_file_prefix);
  if (files.empty()) return;
  for (const auto& older : event_files_with(folder, aside_prefix)) fs::remove(older);
  for (const auto& file : files) {
    const auto suffix = file.filename().string().substr(event_file_prefix.size());
    fs::rename(file, folder / (std::string(aside_prefix) + suffix));
  }
}

}  // namespace hortator::observe
