// Records of a run on a disk that fails: the run continues, and what was recorded before stays.
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "observe/status/status_file.hpp"
#include "observe/trackers/trackers.hpp"
#include "support/catch.hpp"
#include "support/faults/faults.hpp"
#include "support/written.hpp"

using namespace hortator;
using faults::Kind;
namespace fs = std::filesystem;
using Steps = std::vector<std::int64_t>;

namespace {

/// A folder whose name no other path contains.
fs::path root() { return fs::absolute("faulty_records"); }

std::vector<faults::Fault> failures() {
  return {{.kind = Kind::error, .error = EIO, .reads = true},
          {.kind = Kind::error, .error = ENOSPC, .reads = true},
          {.kind = Kind::error, .error = EACCES, .reads = true},
          {.kind = Kind::error, .error = ESTALE, .reads = true}};
}

/// Does `work` with each of its calls failing in turn, once and from then on. `check` gets what it wrote to standard
/// error.
void fail_each_call(const std::function<void()>& prepare, const std::function<void()>& work,
                    const std::function<void(const std::string&)>& check) {
  for (auto failure : failures()) {
    for (const bool on : {false, true}) {
      failure.on = on;
      for (failure.at = 1;; ++failure.at) {
        fs::remove_all(root());
        prepare();
        std::string problem;
        const auto warnings = test::written_to(STDERR_FILENO, [&] {
          faults::arm(root().string(), failure);
          try {
            work();
          } catch (const std::exception& error) {
            problem = error.what();
          }
          faults::disarm();
        });
        const auto hit = faults::last_hit();
        if (hit.empty()) break;
        INFO("error " << failure.error << " at call " << failure.at << (on ? " and after it (" : " (") << hit << ")");
        CHECK(problem.empty());
        check(warnings);
      }
      REQUIRE(failure.at > 1);
    }
  }
}

/// Steps from `first` to 5, by a run that continues one whose last step was `first` - 1, and logs one number more.
void record(std::int64_t first) {
  observe::Trackers trackers({"jsonl", "csv", "tensorboard"}, 0, root());
  if (first > 0) trackers.resume_after(first - 1);
  trackers.log({{"loss", 0.5}}, first);
  trackers.flush();
  const char* further = first > 0 ? "norm" : "rate";
  for (auto step = first + 1; step < 6; ++step) trackers.log({{"loss", 0.25}, {further, 0.1}}, step);
  trackers.finish();
}

Steps json_steps() {
  Steps steps;
  std::ifstream in(root() / "metrics.jsonl");
  for (std::string line; std::getline(in, line);) steps.push_back(nlohmann::json::parse(line).at("step"));
  return steps;
}

Steps csv_steps() {
  Steps steps;
  std::ifstream in(root() / "metrics.csv");
  std::string line;
  std::getline(in, line);
  CHECK(line == "step,time,loss,rate,norm");
  while (std::getline(in, line)) steps.push_back(std::stol(line));
  return steps;
}

}  // namespace

TEST_CASE("a tracker that cannot write or read its file says so and ends, and the next run has each step once") {
  const Steps all = {0, 1, 2, 3, 4, 5};
  fail_each_call([] { record(0); }, [] { record(3); },
                 [&](const std::string& warnings) {
                   if (warnings.find("tracker 'jsonl'") == std::string::npos) CHECK(json_steps() == all);
                   if (warnings.find("tracker 'csv'") == std::string::npos) CHECK(csv_steps() == all);
                   record(3);
                   CHECK(json_steps() == all);
                   CHECK(csv_steps() == all);
                 });
}

TEST_CASE("a row that cannot be appended is reported, and the rows before and after it are whole") {
  const auto file = root() / "rows.jsonl";
  bool is_written = false;
  fail_each_call([&] { observe::append_row(file, "first\n"); },
                 [&] { is_written = observe::append_row(file, "second\n"); },
                 [&](const std::string&) {
                   CHECK(observe::append_row(file, "third\n"));
                   std::ifstream in(file);
                   std::vector<std::string> rows;
                   for (std::string row; std::getline(in, row);) rows.push_back(row);
                   using Rows = std::vector<std::string>;
                   const Rows all{"first", "second", "third"};
                   const bool may_be_missing = !is_written;  // whether it is there is not known if closing fails
                   CHECK((rows == all || (may_be_missing && rows == Rows{"first", "third"})));
                 });
  fs::remove_all(root());
  observe::append_row(file, "first\n");
  faults::arm(root().string(), {.kind = Kind::shorter, .at = 2});
  CHECK(observe::append_row(file, "second\n"));
  faults::disarm();
  CHECK(faults::last_hit() == "write");
  CHECK(fs::file_size(file) == 13);
}
