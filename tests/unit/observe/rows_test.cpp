#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/text/csv.hpp"
#include "observe/trackers/csv_tracker.hpp"
#include "observe/trackers/json_lines_tracker.hpp"
#include "observe/trackers/json_row.hpp"
#include "observe/trackers/log_file.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;
using test::content_of;

namespace {

void write(const std::filesystem::path& file, const std::string& content) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << content;
}

}  // namespace

TEST_CASE("a record is a valid line of JSON, for any names and numbers") {
  const auto infinity = std::numeric_limits<double>::infinity();
  CHECK(observe::json_row({.step = 12, .time = 1.25, .values = {{"loss", 0.1}, {"n", 3}}}) ==
        "{\"step\":12,\"time\":1.250,\"loss\":0.1,\"n\":3}\n");
  CHECK(observe::json_row({.step = 0, .time = 0, .values = {{"a", std::nan("")}, {"b", infinity}, {"c", -infinity}}}) ==
        "{\"step\":0,\"time\":0.000,\"a\":\"NaN\",\"b\":\"Infinity\",\"c\":\"-Infinity\"}\n");
  const auto row = observe::json_row({.step = 1, .values = {{"a \"b\"\n\xff", 1}}});
  CHECK(nlohmann::json::parse(row).size() == 3);
  CHECK(observe::step_of_json_row(R"({"step":7,"time":1.0})") == 7);
  CHECK(observe::step_of_json_row(R"({"step":7,"time":1.)") == std::nullopt);
  CHECK(observe::step_of_json_row("") == std::nullopt);
  CHECK(std::stod(observe::number_text(0.1)) == 0.1);
  CHECK(nlohmann::json::parse(observe::json_config({{"lr", 0.5}, {"fused", true}, {"name", "x"}, {"n", 3}})) ==
        nlohmann::json({{"lr", 0.5}, {"fused", true}, {"name", "x"}, {"n", 3}}));
}

TEST_CASE("rows of later steps and unfinished rows are removed") {
  const State state;
  const test::Folder folder(state, "rows");
  if (!state.is_main_process()) return;
  const auto file = folder.path() / "a.jsonl";
  const auto row = [](int step) { return observe::json_row({.step = step, .values = {{"x", step}}}); };
  const auto cut = [&](std::int64_t last) {
    observe::cut_rows(file, observe::FirstRow::data, observe::step_of_json_row, last);
  };

  write(file, row(1) + row(2) + row(3) + R"({"step":4,"ti)");
  cut(3);
  CHECK(content_of(file) == row(1) + row(2) + row(3));
  cut(2);
  CHECK(content_of(file) == row(1) + row(2));
  write(file, row(1) + row(5) + row(2) + "rubbish\n" + row(6));
  cut(2);
  CHECK(content_of(file) == row(1) + row(2));
  cut(0);
  CHECK(content_of(file).empty());
  std::filesystem::remove(file);
  cut(1);  // no file exists, and none is created
  CHECK_FALSE(std::filesystem::exists(file));
}

TEST_CASE("a table gets new columns as they appear, and keeps the earlier run's rows up to the resumed step") {
  const State state;
  const test::Folder folder(state, "table");
  if (!state.is_main_process()) return;
  {
    observe::CsvTracker tracker;
    tracker.start({.name = "t", .folder = folder.path()});
    tracker.log({.step = 1, .time = 1, .values = {{"loss", 0.5}}});
    tracker.log({.step = 2, .time = 2, .values = {{"loss", 0.25}, {"a,\"b\"", 7}}});
    tracker.log({.step = 3, .time = 3, .values = {{"a,\"b\"", 8}}});
    tracker.finish();
  }
  const std::string heading = "step,time,loss,\"a,\"\"b\"\"\"\n";
  CHECK(content_of(folder.path() / "t.csv") == heading + "1,1.000,0.5,\n2,2.000,0.25,7\n3,3.000,,8\n");
  CHECK(core::parse_csv_record("step,time,loss,\"a,\"\"b\"\"\"") ==
        std::vector<std::string>{"step", "time", "loss", "a,\"b\""});
  {
    observe::CsvTracker tracker;
    tracker.start({.name = "t", .folder = folder.path(), .last_step = 2});
    tracker.log({.step = 3, .time = 4, .values = {{"a,\"b\"", 9}, {"new", 1}}});
  }
  CHECK(content_of(folder.path() / "t.csv") ==
        "step,time,loss,\"a,\"\"b\"\"\",new\n1,1.000,0.5,,\n2,2.000,0.25,7,\n3,4.000,,9,1\n");
  {
    observe::CsvTracker tracker;
    tracker.start({.name = "t", .folder = folder.path()});
    tracker.log({.step = 0, .time = 5, .values = {{"x", 1}}});
  }
  CHECK(content_of(folder.path() / "t.csv") == "step,time,x\n0,5.000,1\n");
  CHECK(std::filesystem::exists(folder.path() / "t.csv.old"));
}

TEST_CASE("a tracker opens no file before the first record") {
  const State state;
  const test::Folder folder(state, "untouched");
  if (!state.is_main_process()) return;
  const auto file = folder.path() / "r.jsonl";
  write(file, observe::json_row({.step = 1}) + observe::json_row({.step = 2}));
  observe::JsonLinesTracker tracker;
  tracker.start({.name = "r", .folder = folder.path()});
  tracker.flush();
  CHECK(content_of(file).size() > 20);
  tracker.rewind(1);  // the state was loaded: the run resumes after all
  tracker.log({.step = 2, .time = 9});
  tracker.finish();
  CHECK(content_of(file) == observe::json_row({.step = 1}) + observe::json_row({.step = 2, .time = 9}));
}
