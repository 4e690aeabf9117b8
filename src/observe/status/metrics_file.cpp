#include "observe/status/metrics_file.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <string_view>
#include <utility>

#include "core/environment/environment.hpp"
#include "core/text/text.hpp"
#include "core/whole_file.hpp"

namespace hortator::observe {
namespace {

namespace fs = std::filesystem;

// In larger jobs the file holds the main rank's figures; `hortator watch --metrics` reads all of them outside of the
// job.
constexpr int max_ranks_read = 512;
constexpr double max_share_of_time = 1e-3;
constexpr auto first_file_after = std::chrono::seconds(1);

std::vector<RankStatus> rows_of_run(const fs::path& status, const RankStatus& own) {
  std::vector<RankStatus> ranks = {own};
  if (own.world == 1 || own.world > max_ranks_read) return ranks;
  const auto content = core::read_at_most(status / ranks_file, row_bytes * max_ranks_read).value_or("");
  for (std::size_t at = 0; at + row_bytes <= content.size(); at += row_bytes) {
    auto row = parse_status(std::string_view(content).substr(at, row_bytes));
    if (row && row->run_id == own.run_id && row->rank != own.rank) ranks.push_back(std::move(*row));
  }
  return ranks;
}

int count_restarts(const fs::path& status) {
  int restarts = 0;
  const auto content = core::read_at_most(status / sessions_file, std::uint64_t{1} << 24).value_or("");
  for (const auto& row : text::split(content, '\n')) {
    const auto session = parse_session(row);
    if (session) restarts = session->resumed_after ? restarts + 1 : 0;
  }
  return restarts;
}

}  // namespace

MetricsFile::MetricsFile(fs::path run_folder, std::chrono::duration<double> period)
    : folder_(std::move(run_folder)), period_(period), next_(Clock::now() + first_file_after) {}

void MetricsFile::write(const RankStatus& own) {
  const auto begin = Clock::now();
  const auto status = folder_ / status_folder;
  if (!restarts_) restarts_ = count_restarts(status);
  const MetricsFacts facts{.run = folder_.string(),
                           .state = own.is_over ? "over" : "running",
                           .ranks = rows_of_run(status, own),
                           .restarts = restarts_};
  // A failure is ignored: the status itself warns of a folder that cannot be written.
  core::write_whole(folder_ / metrics_file, folder_ / ".metrics.new", metrics_text(facts, own.time));
  const std::chrono::duration<double> took = Clock::now() - begin;
  next_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::max(period_, took / max_share_of_time));
}

std::chrono::duration<double> metrics_period() {
  constexpr std::chrono::duration<double> usual(15);
  const auto asked = core::variable("HORTATOR_METRICS_SECONDS");
  if (!asked) return usual;
  long long seconds = 0;
  if (!text::parse_integer(*asked, seconds) || seconds < 0) {
    throw UsageError({.what = "HORTATOR_METRICS_SECONDS: expected a whole number from 0, got " + text::quote(*asked),
                      .hint = "0 writes no metrics.prom"});
  }
  return std::chrono::seconds(seconds);
}

}  // namespace hortator::observe
