#include "observe/status/metrics_text.hpp"

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "observe/status/metrics_file.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

using namespace hortator;
using observe::RankStatus;

namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

std::vector<RankStatus> ranks_on(int nodes, int each) {
  std::vector<RankStatus> ranks;
  for (int rank = 0; rank < nodes * each; ++rank) {
    ranks.push_back({.run_id = "r",
                     .rank = rank,
                     .world = nodes * each,
                     .host = "n" + std::to_string(rank / each),
                     .time = 100,
                     .memory_bytes = rank + 1});
  }
  return ranks;
}

}  // namespace

TEST_CASE("metrics of ranks are the mean and the extremes of each node") {
  const auto text = observe::metrics_text({.run = "a", .ranks = ranks_on(2, 4)}, 100);
  CHECK_THAT(text, ContainsSubstring(R"(hortator_memory_bytes{run="a",job="",host="n0",ranks="0-3",stat="mean"} 2.5)"));
  CHECK_THAT(text, ContainsSubstring(R"(hortator_memory_bytes{run="a",job="",host="n1",ranks="4-7",stat="min"} 5)"));
  CHECK_THAT(text, ContainsSubstring(R"(hortator_memory_bytes{run="a",job="",host="n1",ranks="4-7",stat="max"} 8)"));
  CHECK_THAT(text, ContainsSubstring(R"(hortator_nodes{run="a",job=""} 2)"));
  CHECK_THAT(text, !ContainsSubstring("gpu_"));
  CHECK(text.ends_with("# EOF\n"));
}

TEST_CASE("the number of lines is bounded in jobs of any size") {
  const auto text = observe::metrics_text({.run = "a", .ranks = ranks_on(1250, 8)}, 100);
  CHECK(count(text, "hortator_memory_bytes{") <= 3 * 64);
  CHECK_THAT(text, ContainsSubstring(R"(host="n0 and 19 more",ranks="0-159",stat="max"} 160)"));
  CHECK(count(text, "\n") < 2000);
}

TEST_CASE("labels are escaped, and values may be infinite") {
  auto ranks = ranks_on(1, 1);
  ranks[0].job = "slurm \"7\"\n\\";
  ranks[0].values = {{"loss", INFINITY}, {"a", NAN}, {"b", 0.1}};
  const auto text = observe::metrics_text({.run = "a", .ranks = ranks}, 100);
  CHECK_THAT(text, ContainsSubstring(R"(job="slurm \"7\"\n\\",name="loss"} +Inf)"));
  CHECK_THAT(text, ContainsSubstring(R"(name="a"} NaN)"));
  CHECK_THAT(text, ContainsSubstring(R"(name="b"} 0.10000000000000001)"));
}

TEST_CASE("each metric has one heading, and metrics without samples have none") {
  const auto text = observe::metrics_text({.run = "a"}, 100);
  CHECK(count(text, "# TYPE") == 1);
  CHECK(count(text, R"(hortator_run_state{run="a",job="",state="running"} 1)") == 1);
  CHECK(count(text, "} 0\n") == 7);
  const auto full = observe::metrics_text(
      {.run = "a", .ranks = ranks_on(3, 2), .restarts = 1, .failed_attempts = 2, .checkpoints = 3, .deadline = 9}, 200);
  CHECK(count(full, "# HELP") == count(full, "# TYPE"));
  CHECK_THAT(full, ContainsSubstring(R"(hortator_silent_ranks{run="a",job=""} 6)"));
  CHECK_THAT(full, ContainsSubstring(R"(hortator_deadline_time_seconds{run="a",job=""} 9)"));
}

TEST_CASE(
    "the file is replaced as a whole, holds the rows of all ranks, and costs less than a thousandth of the time") {
  const test::OwnFolder folder("metrics");
  const auto status = folder.path / observe::status_folder;
  std::filesystem::create_directories(status);
  const auto ranks = ranks_on(1, 2);
  for (const auto& rank : ranks) std::ofstream(status / observe::ranks_file, std::ios::app) << to_row(rank);
  std::ofstream(status / observe::sessions_file)
      << to_row(observe::Session{.run_id = "r"}) << to_row(observe::Session{.run_id = "r", .resumed_after = 3});
  const auto period = observe::metrics_period();
  observe::MetricsFile file(folder.path, period);
  CHECK(file.is_on());
  CHECK_FALSE(file.is_due());
  constexpr int writes = 50;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < writes; ++i) file.write(ranks[0]);
  const std::chrono::duration<double> each = (std::chrono::steady_clock::now() - begin) / writes;
  std::cout << "metrics.prom of 2 ranks takes " << 1e6 * each.count() << " us\n";
  CHECK(each < period / 1000);
  const auto text = test::content_of(folder.path / observe::metrics_file);
  CHECK_THAT(text, ContainsSubstring(R"(ranks="0-1",stat="max"} 2)"));
  CHECK_THAT(text, ContainsSubstring("hortator_restarts{run=\"" + folder.path.string() + "\",job=\"\"} 1"));
  CHECK(text.ends_with("# EOF\n"));
  CHECK_FALSE(observe::MetricsFile(folder.path, std::chrono::seconds(0)).is_on());
}
