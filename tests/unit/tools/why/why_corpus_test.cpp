#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <set>

#include "support/catch.hpp"
#include "support/files.hpp"
#include "tools/why/diagnosis.hpp"
#include "tools/why/evidence.hpp"
#include "unit/tools/why/why_fixture.hpp"

using namespace hortator;
using why_cases::Json;

namespace {

std::vector<Json> corpus() {
  std::vector<Json> cases;
  std::ifstream in(WHY_CORPUS);
  for (std::string line; std::getline(in, line);) cases.push_back(Json::parse(line));
  return cases;
}

/// The process_id() of a process that has ended.
std::string dead_process() {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  const auto child = fork();
  if (child == 0) {
    const auto id = core::process_id();
    const auto written = ::write(ends[1], id.data(), id.size());
    _exit(written == static_cast<ssize_t>(id.size()) ? 0 : 1);
  }
  waitpid(child, nullptr, 0);
  std::string id(256, '\0');
  id.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::read(ends[0], id.data(), id.size()))));
  close(ends[0]);
  close(ends[1]);
  return id;
}

}  // namespace

TEST_CASE("each of 60 recorded failures gets its rank, class and decision, and none is stopped that a restart cures") {
  const auto cases = corpus();
  REQUIRE(cases.size() == 60);
  const auto dead = dead_process();
  REQUIRE(core::has_ended(dead));
  int stopped = 0;
  for (const auto& one : cases) {
    const test::OwnFolder folder("why");
    why_cases::write_case(folder.path, one, dead, tools::signature_of);
    const auto found = tools::diagnose(tools::read_evidence(folder.path));
    INFO(one["name"].get<std::string>() << ": rule " << found.rule << ", " << found.problem);
    CHECK(found.state == "failed");
    REQUIRE(found.decision.has_value());
    CHECK(to_string(*found.decision) == one["decision"].get<std::string>());
    CHECK(found.error_class == one["class"].get<std::string>());
    CHECK((found.rank ? Json(*found.rank) : Json()) == one["rank"]);
    if (one["cured"].get<bool>()) CHECK(*found.decision == tools::Decision::retry);
    if (*found.decision == tools::Decision::stop) ++stopped;
    CHECK_FALSE(found.reason.empty());
  }
  CHECK(stopped >= 15);
}

TEST_CASE("the records of 10,000 ranks are read and judged within five seconds") {
  constexpr int ranks = 10'000;
  const test::OwnFolder folder("why");
  const Json one = {{"world", ranks}, {"hosts", ranks / 8}, {"updates", 4000}};
  std::string statuses;
  std::string endings;
  for (int rank = 0; rank < ranks; ++rank) {
    statuses += to_row(why_cases::status_of(one, rank));
    const bool is_first = rank == 7777;
    const Json ending = {
        {"rank", rank},
        {"t", is_first ? 0.0 : 0.1 + 1e-5 * rank},
        {"updates", 4000},
        {"type", "hortator::Error"},
        {"problem", is_first ? "CUDA error: uncorrectable ECC error encountered"
                             : "NCCL failed in all_reduce: remote process exited, rank " + std::to_string(rank)}};
    // Some were ended before they could write.
    endings += rank % 10 == 3 ? std::string(runtime::ending_bytes, '\0') : to_row(why_cases::ending_of(one, ending));
  }
  const auto status = folder.path / observe::status_folder;
  std::filesystem::create_directories(status);
  std::ofstream(status / observe::ranks_file, std::ios::binary) << statuses;
  std::ofstream(status / runtime::endings_file, std::ios::binary) << endings;

  const auto begin = std::chrono::steady_clock::now();
  const auto found = tools::diagnose(tools::read_evidence(folder.path));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::cout << "the records of " << ranks << " ranks took " << took.count() << " s\n";
  CHECK(took.count() <= 5);
  CHECK(found.rank == 7777);
  CHECK(found.error_class == "device");
  CHECK(found.suspect_host == "n973");
  REQUIRE(found.chain.size() == 3);
  CHECK(found.chain[1].ranks.size() == 8999);
  CHECK(found.chain[2].ranks.size() == 1000);
}
