#include "tools/launch/killed_rank.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <hortator/version.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/signal_name.hpp"
#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "core/time.hpp"
#include "core/whole_file.hpp"

namespace hortator::tools {
namespace {

std::string cause(const KilledRankFacts& facts) {
  if (facts.killed.signal != SIGKILL) return "";
  std::string text = ", often the kernel's out-of-memory killer";
  if (facts.oom_before && facts.oom_now) {
    text += text::concat(" (oom_kill in ", facts.oom_now->source, ": ", facts.oom_before->count, " before the run, ",
                         facts.oom_now->count, " now)");
  }
  return text;
}

std::string last_seen(const KilledRankFacts& facts) {
  if (!facts.status) return "";
  const auto& status = *facts.status;
  auto text = text::concat("; its status ",
                           units::duration(std::chrono::duration<double>(std::max(0.0, facts.now - status.time))),
                           " ago: ", status.phase);
  for (const auto& loop : status.loops) {
    text += text::concat(", ", loop.title.empty() ? "loop" : loop.title, ' ', loop.done);
    if (loop.total >= 0) text += text::concat(" of ", loop.total);
  }
  return text + text::concat(", ", text::count(status.updates, "update"));
}

std::string host_of(const KilledRankFacts& facts) { return facts.status ? facts.status->host : facts.killed.host; }

}  // namespace

std::string killed_problem(const KilledRankFacts& facts) {
  if (facts.killed.signal == 0) {
    return "Its process has exited without finalising MPI, as by _exit() or by exit() in a library" + last_seen(facts);
  }
  return text::concat("Killed by signal ", facts.killed.signal, " (", core::signal_name(facts.killed.signal), ')',
                      cause(facts), last_seen(facts));
}

std::string killed_record(const KilledRankFacts& facts) {
  const nlohmann::ordered_json record = {{"run_id", facts.status ? facts.status->run_id : ""},
                                         {"rank", facts.killed.rank},
                                         {"host", host_of(facts)},
                                         {"pid", facts.killed.pid},
                                         {"exit_code", facts.killed.signal == 0 ? 1 : 128 + facts.killed.signal},
                                         {"problem", killed_problem(facts)},
                                         {"where", nullptr},
                                         {"time", core::utc(static_cast<std::time_t>(facts.now))},
                                         {"hortator", HORTATOR_VERSION},
                                         {"kind", facts.killed.signal == 0 ? "exit" : "killed"},
                                         {"type", ""},
                                         {"world_size", facts.status ? facts.status->world : 1},
                                         {"on_host", 0},
                                         {"signal", facts.killed.signal},
                                         {"at", facts.now},
                                         {"updates", facts.status ? facts.status->updates : 0}};
  return record.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::optional<observe::RankStatus> last_status(const std::filesystem::path& folder, int rank, double since) {
  std::ifstream in(folder / observe::status_folder / observe::ranks_file, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(rank) * static_cast<std::streamoff>(observe::row_bytes));
  std::string row(observe::row_bytes, '\0');
  if (!in.read(row.data(), static_cast<std::streamsize>(row.size()))) return {};
  auto status = observe::parse_status(row);
  return status && status->rank == rank && status->time >= since ? status : std::nullopt;
}

void report_killed_rank(const KilledRankFacts& facts, const std::filesystem::path& folder) {
  std::cerr << text::concat("hortator: rank ", facts.killed.rank, " (", host_of(facts), "): ", killed_problem(facts),
                            '\n')
            << std::flush;
  if (folder.empty()) return;
  const auto file = folder / "failure.json";
  if (!core::write_whole(file, folder / ".failure-launch.json", killed_record(facts) + '\n'))
    std::cerr << "hortator: could not write " << file.string() << std::endl;
}

}  // namespace hortator::tools
