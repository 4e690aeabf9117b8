#include "tools/trace/kineto_file.hpp"

#include <fstream>
#include <hortator/error.hpp>
#include <map>

#include "core/text/text.hpp"

namespace hortator::tools {
namespace {

namespace fs = std::filesystem;
using TraceJson = nlohmann::ordered_json;

constexpr double nanoseconds = 1e-3;  // in microseconds
constexpr auto barriers_group = "profile";

/// The rank of "profile_3.json" or, of cycle 2, "profile_3.2.json"; -1 for other names.
int rank_of_name(const std::string& name, int cycle) {
  const auto end = cycle == 0 ? std::string(".json") : text::concat('.', cycle, ".json");
  constexpr std::string_view begin = "profile_";
  if (!name.starts_with(begin) || !name.ends_with(end) || name.size() <= begin.size() + end.size()) return -1;
  long long rank = -1;
  const auto digits = name.substr(begin.size(), name.size() - begin.size() - end.size());
  return text::parse_integer(digits, rank) && rank >= 0 && rank < (1 << 30) ? static_cast<int>(rank) : -1;
}

std::map<int, fs::path> files_in(const fs::path& folder, int cycle) {
  std::map<int, fs::path> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const int rank = rank_of_name(entry->path().filename().string(), cycle);
    if (rank >= 0) files[rank] = entry->path();
  }
  return files;
}

void read_own_facts(TraceHead& head, const TraceJson& own) {
  head.rank = own.at("rank");
  head.world = own.at("world");
  head.host = own.at("host");
  std::uint64_t sequence = 0;
  for (const auto& barrier : own.at("barriers")) {
    head.barriers.push_back({.group = barriers_group,
                             .sequence = ++sequence,
                             .begin = barrier.at(0).get<double>() * nanoseconds - head.base,
                             .end = barrier.at(1).get<double>() * nanoseconds - head.base});
  }
}

}  // namespace

TraceHead read_trace(const fs::path& file, int number, const std::function<void(TraceJson& event)>& take) {
  std::ifstream in(file);
  if (!in) throw Error({.what = "Cannot read " + text::quote(file.string())});
  constexpr int depth_of_events = 2;  // within the list in the file's object
  bool is_in_events = false;
  const auto keep = [&](int depth, TraceJson::parse_event_t event, TraceJson& value) {
    if (depth == 1 && event == TraceJson::parse_event_t::key) is_in_events = value == "traceEvents";
    if (!is_in_events || depth != depth_of_events || event != TraceJson::parse_event_t::object_end) return true;
    take(value);
    return false;
  };
  try {
    const auto json = TraceJson::parse(in, keep);
    TraceHead head{.rank = number};
    head.base = json.value("baseTimeNanoseconds", 0.0) * nanoseconds;
    if (const auto own = json.find("hortator"); own != json.end()) read_own_facts(head, *own);
    return head;
  } catch (const TraceJson::exception& error) {
    throw Error({.what = text::concat(text::quote(file.string()), " is not a valid trace"),
                 .why = error.what(),
                 .hint = "a run that was killed while it wrote leaves half a file: record again"});
  }
}

std::vector<fs::path> trace_files(const fs::path& folder, int cycle) {
  auto files = files_in(folder, cycle);
  if (files.empty()) files = files_in(folder / "profile", cycle);
  const auto wanted = cycle == 0 ? std::string("profile_0.json") : text::concat("profile_0.", cycle, ".json");
  if (files.empty()) {
    throw UsageError(
        {.what = text::concat("No traces in ", text::quote(folder.string()), ": expected ", wanted, ", ..."),
         .hint = "name the folder that Accelerator::profile() wrote to, or that of the run"});
  }
  std::vector<fs::path> list;
  for (const auto& [rank, file] : files) {
    if (rank != static_cast<int>(list.size())) {
      throw Error({.what = text::concat("The trace of rank ", list.size(), " is missing in ",
                                        text::quote(file.parent_path().string())),
                   .why = "only with all ranks can it be known who waits for whom",
                   .hint = "copy the files of all ranks into one folder"});
    }
    list.push_back(file);
  }
  return list;
}

}  // namespace hortator::tools
