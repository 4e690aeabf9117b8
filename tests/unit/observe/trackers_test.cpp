#include "observe/trackers/trackers.hpp"

#include <ATen/ATen.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "observe/trackers/tracker_factory.hpp"
#include "support/catch.hpp"
#include "support/written.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;
using Steps = std::vector<std::int64_t>;

namespace {

/// A tracker as a user would write it.
class Notes final : public Tracker {
 public:
  std::string name() const override { return "notes"; }
  void log(const TrackerRecord& record) override { records.push_back(record); }
  void finish() override { ++finished; }
  std::vector<TrackerRecord> records = {};
  int finished = 0;
};

Steps steps_in(const std::filesystem::path& file) {
  Steps steps;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) steps.push_back(nlohmann::json::parse(line).at("step"));
  return steps;
}

Steps range(std::int64_t from, std::int64_t to) {
  Steps steps;
  for (auto step = from; step < to; ++step) steps.push_back(step);
  return steps;
}

}  // namespace

TEST_CASE("a run that resumes from a checkpoint has every step once") {
  const State state;
  const test::Folder folder(state, "tracked");
  const auto file = folder.path() / "logs" / "digits.jsonl";
  const auto run = [&](int steps, int save_after, bool resume) {
    Accelerator accelerator({.log_with = {"jsonl", "csv", "tensorboard"}, .project = {.dir = folder.path()}});
    accelerator.init_trackers("digits", {{"lr", 0.1}});
    if (resume) accelerator.load_state();
    for (int i = 0; i < steps; ++i) {
      accelerator.log({{"loss", 0.5}, {"tensor", at::full({}, i)}});
      if (i + 1 == save_after) accelerator.save_state();
    }
    accelerator.end_training();
  };
  run(10, 6, false);
  if (state.is_main_process()) CHECK(steps_in(file) == range(0, 10));
  run(5, 3, true);  // steps 6 to 10; those of the first run after 5 are removed
  if (state.is_main_process()) CHECK(steps_in(file) == range(0, 11));
  run(1, 0, true);  // 9; later steps are removed again
  if (state.is_main_process()) CHECK(steps_in(file) == range(0, 10));
  run(2, 0, false);  // from scratch
  if (state.is_main_process()) {
    CHECK(steps_in(file) == range(0, 2));
    CHECK(steps_in(file.string() + ".old") == range(0, 10));
    CHECK(nlohmann::json::parse(std::ifstream(folder.path() / "logs" / "digits.config.json")).at("lr") == 0.1);
  }
}

TEST_CASE("records logged before a save survive a kill after it") {
  const State state;
  const test::Folder folder(state, "flushed");
  Accelerator accelerator({.project = {.dir = folder.path()}});
  for (int i = 0; i < 5; ++i) accelerator.log({{"loss", i}});
  accelerator.save_state();
  if (state.is_main_process()) CHECK(steps_in(folder.path() / "logs" / "metrics.jsonl") == range(0, 5));
}

TEST_CASE("numbers are reduced over the ranks before they are logged") {
  const State state;
  const test::Folder folder(state, "reduced_log");
  const auto notes = std::make_shared<Notes>();
  Accelerator accelerator({.log_with = {notes}, .project = {.dir = folder.path()}});
  const double rank = state.process_index(), world = state.num_processes();
  accelerator.log({{"loss", at::full({1}, rank)}, {"one", 1}}, Reduce::mean, 3);
  accelerator.log({{"most", rank}}, Reduce::max);
  accelerator.log({{"all", 2}}, Reduce::sum);
  if (!state.is_main_process()) return;
  using Values = std::vector<std::pair<std::string, double>>;
  REQUIRE(notes->records.size() == 3);
  CHECK(notes->records[0].values == Values{{"loss", (world - 1) / 2}, {"one", 1}});
  CHECK(notes->records[0].step == 3);
  CHECK(notes->records[1].values == Values{{"most", world - 1}});
  CHECK(notes->records[2].values == Values{{"all", 2 * world}});
}

TEST_CASE("a user's tracker gets numbers of all types, on the main process only") {
  const State state;
  const test::Folder folder(state, "own_tracker");
  const auto notes = std::make_shared<Notes>();
  Accelerator accelerator({.log_with = {notes}, .project = {.dir = folder.path()}});
  const auto weight = at::full({}, 2.5).requires_grad_();
  accelerator.log({{"int", 3}, {"bool", true}, {"float", 0.5F}, {"tensor", weight * 2}}, 7);
  accelerator.log({{"next", 1}});
  const std::vector<std::pair<std::string, Loggable>> made = {{"made", 4}};
  accelerator.log(made, 20);
  CHECK_THROWS_WITH(accelerator.log({{"x", 1}}, -1), ContainsSubstring("the step -1"));
  if (!state.is_main_process()) {
    CHECK(notes->records.empty());
  } else {
    REQUIRE(notes->records.size() == 3);
    using Values = std::vector<std::pair<std::string, double>>;
    CHECK(notes->records[0].values == Values{{"int", 3}, {"bool", 1}, {"float", 0.5}, {"tensor", 5}});
    CHECK(notes->records[0].step == 7);
    CHECK(notes->records[1].step == 8);
    CHECK(notes->records[2].step == 20);
    CHECK(notes->records[0].time > 1.7e9);
  }
  CHECK(notes->finished == 0);
  accelerator.end_training();
  CHECK(notes->finished == (state.is_main_process() ? 1 : 0));
  CHECK_FALSE(std::filesystem::exists(folder.path() / "logs" / "metrics.jsonl"));
}

TEST_CASE("a tracker that is not for the main process only gets each process's own numbers") {
  const State state;
  const test::Folder folder(state, "all_processes");
  class OwnRows final : public Tracker {
   public:
    std::string name() const override { return "own_rows"; }
    bool main_process_only() const override { return false; }
    void start(const TrackerStart& start) override {
      file = start.folder / ("rank_" + std::to_string(start.process_index) + ".txt");
      last_step = start.last_step;
    }
    void log(const TrackerRecord& record) override {
      std::ofstream(file, std::ios::app) << record.step << ' ' << record.values.at(0).second << '\n';
    }
    void rewind(std::int64_t step) override { rewound = step; }
    std::filesystem::path file;
    std::optional<std::int64_t> last_step, rewound;
  };
  const auto rows = std::make_shared<OwnRows>();
  {
    Accelerator accelerator({.log_with = {"jsonl", rows}, .project = {.dir = folder.path()}});
    CHECK(accelerator.get_tracker("own_rows").name() == "own_rows");
    CHECK(accelerator.get_tracker("jsonl").name() == (state.is_main_process() ? "jsonl" : "none"));
    for (int i = 0; i < 3; ++i) accelerator.log({{"rank", state.process_index() + 10 * i}});
    accelerator.save_state();
    accelerator.load_state();
    CHECK(rows->rewound == 2);
    accelerator.end_training();
  }
  CHECK(rows->file.filename() == "rank_" + std::to_string(state.process_index()) + ".txt");
  std::stringstream text;
  text << std::ifstream(rows->file).rdbuf();
  const auto rank = state.process_index();
  std::ostringstream expected;
  for (int i = 0; i < 3; ++i) expected << i << ' ' << rank + 10 * i << '\n';
  CHECK(text.str() == expected.str());
  if (state.is_main_process()) CHECK(steps_in(folder.path() / "logs" / "metrics.jsonl") == range(0, 3));
}

TEST_CASE("a tensor that changes after log() is recorded with its earlier value") {
  const State state;
  const test::Folder folder(state, "changed");
  const auto notes = std::make_shared<Notes>();
  Accelerator accelerator({.log_with = {notes}, .project = {.dir = folder.path()}});
  const auto value = at::full({}, 1.0);
  accelerator.log({{"x", value}});
  value.fill_(9);
  accelerator.log({{"x", value}});
  if (state.is_main_process()) CHECK(notes->records.at(0).values.at(0).second == 1);
}

TEST_CASE("get_tracker returns the tracker of a name, and a silent one on other processes") {
  const State state;
  const test::Folder folder(state, "get_tracker");
  Accelerator accelerator({.log_with = {"tensorboard", "csv"}, .project = {.dir = folder.path()}});
  auto& tensorboard = accelerator.get_tracker("tensorboard");
  tensorboard.log_text("sample", "words", 1);
  if (HORTATOR_TEST_PNG) tensorboard.log_images("image", at::rand({2, 3, 4, 5}), 1);
  tensorboard.log_histogram("weights", at::randn({100}), 1);
  tensorboard.log_audio("tone", at::sin(at::arange(100.0F)), 8000, 1);
  tensorboard.log_table("samples", {.columns = {"x"}, .rows = {{1}}}, 1);
  CHECK_THROWS_WITH(accelerator.get_tracker("tensorbord"), ContainsSubstring("did you mean 'tensorboard'?"));
  CHECK_THROWS_WITH(accelerator.get_tracker("jsonl"), ContainsSubstring("log_with has no tracker 'jsonl'"));
  if (state.is_main_process()) {
    CHECK_THROWS_WITH(tensorboard.log_images("image", at::rand({4, 5}), 1), ContainsSubstring("of shape [4, 5]"));
    CHECK_THROWS_WITH(accelerator.get_tracker("csv").log_text("a", "b", 1),
                      ContainsSubstring("'csv' cannot keep text"));
    CHECK_THROWS_WITH(tensorboard.log_artifact("file"), ContainsSubstring("get_tracker(\"mlflow\")"));
  } else {
    CHECK(tensorboard.name() == "none");
  }
}

TEST_CASE("unavailable trackers are refused by name, with the alternative") {
  const State state;
  const auto make = [](std::vector<LogWith> chosen) { observe::check_trackers(chosen); };
  CHECK_THROWS_WITH(Accelerator({.log_with = {"comet_ml"}}),
                    ContainsSubstring("log_with: 'comet_ml' is not available") && ContainsSubstring("log_metrics"));
  for (const char* name : {"comet_ml", "clearml"})
    CHECK_THROWS_WITH(make({name}), ContainsSubstring("hortator::Tracker"));
  CHECK_THROWS_WITH(make({"tensorbord"}), ContainsSubstring("did you mean 'tensorboard'?"));
  CHECK_THROWS_WITH(make({"csv", "csv"}), ContainsSubstring("'csv' is named twice"));
  CHECK_THROWS_WITH(make({"all", "csv"}), ContainsSubstring("'csv' is named twice"));
  CHECK_THROWS_WITH(make({std::shared_ptr<Tracker>()}), ContainsSubstring("null"));
  CHECK(observe::make_trackers({"all"}).size() == 3);
}

TEST_CASE("services whose commands take files get them, each in a folder of its own, and the command is logged") {
  const State state;
  const test::Folder folder(state, "synced");
  const std::vector<std::pair<std::string, std::string>> services = {{"wandb", "wandb sync"},
                                                                     {"aim", "aim convert tensorboard"},
                                                                     {"swanlab", "swanlab convert"},
                                                                     {"dvclive", "dvc plots show"},
                                                                     {"trackio", "trackio.import_csv"}};
  std::vector<LogWith> chosen = {"tensorboard", "csv"};
  for (const auto& [name, command] : services) chosen.emplace_back(name);
  CHECK_NOTHROW(observe::check_trackers(chosen));
  if (!state.is_main_process()) return;
  auto trackers = observe::make_trackers(chosen);
  const test::Written log(STDERR_FILENO);
  for (const auto& tracker : trackers) {
    tracker->start({.name = "run", .folder = folder.path()});
    tracker->log({.step = 1, .time = 2, .values = {{"loss", 0.5}}});
    tracker->finish();
    tracker->finish();
  }
  for (const auto& [name, command] : services) {
    INFO(name);
    const bool is_csv = name == "dvclive" || name == "trackio";
    CHECK(std::filesystem::exists(folder.path() / name / (is_csv ? "run.csv" : "run")));
    CHECK_THAT(log.text(), ContainsSubstring(name + ": ") && ContainsSubstring(command));
    CHECK(trackers[2]->name() == "wandb");
  }
  CHECK(std::filesystem::exists(folder.path() / "run.csv"));
}

TEST_CASE("init_trackers is called once, with a valid file name") {
  const State state;
  const test::Folder folder(state, "names");
  Accelerator accelerator({.project = {.dir = folder.path()}});
  CHECK_THROWS_WITH(accelerator.init_trackers("a/b"), ContainsSubstring("the name 'a/b'"));
  accelerator.init_trackers("once");
  CHECK_THROWS_WITH(accelerator.init_trackers("twice"), ContainsSubstring("after the trackers have started"));
}

TEST_CASE("an unwritable folder is an error on all ranks at the start, and a warning later") {
  const State state;
  const test::Folder folder(state, "unwritable");
  if (state.is_main_process()) {
    std::filesystem::create_directories(folder.path());
    std::ofstream(folder.path() / "logs") << "a file";
  }
  state.wait_for_everyone();
  Accelerator accelerator({.project = {.dir = folder.path()}});
  CHECK_THROWS_AS(accelerator.init_trackers("digits"), std::exception);
  CHECK_NOTHROW(accelerator.log({{"loss", 1}}));
}
