#include "observe/trackers/mlflow_store.hpp"

#include <fstream>
#include <hortator/error.hpp>
#include <map>
#include <sstream>

#include "core/text/text.hpp"
#include "mpi/communicator.hpp"
#include "observe/trackers/mlflow_tracker.hpp"
#include "support/catch.hpp"

using namespace hortator;
namespace fs = std::filesystem;

namespace {

std::string content(const fs::path& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

fs::path store_of(const char* name) {
  const auto folder = fs::absolute(text::concat("mlflow_", name, "_", mpi::Communicator::world().rank()));
  fs::remove_all(folder);
  return folder;
}

void log_step(Tracker& tracker, std::int64_t step, double value) {
  tracker.log({.step = step, .time = 12.5, .values = {{"train/loss", value}, {"rate", 0.1}}});
}

std::vector<fs::path> runs_in(const fs::path& folder) {
  std::vector<fs::path> runs;
  for (const auto& entry : fs::directory_iterator(folder / "mlruns" / observe::mlflow_experiment_id("digits"))) {
    if (entry.is_directory()) runs.push_back(entry.path());
  }
  return runs;
}

}  // namespace

TEST_CASE("names for MLflow have its characters only, and stay within the run") {
  CHECK(observe::mlflow_name("train/loss") == "train/loss");
  CHECK(observe::mlflow_name("a b-c.d:e_f") == "a b-c.d:e_f");
  CHECK(observe::mlflow_name("loss (%)") == "loss ___");
  CHECK(observe::mlflow_name("../up//x/.") == "_/up/x/_");
  CHECK(observe::mlflow_name("/") == "_");
  CHECK(observe::mlflow_experiment_id("digits").size() == 18);
  CHECK(observe::mlflow_experiment_id("digits") != observe::mlflow_experiment_id("digit"));
}

TEST_CASE("metrics whose files would collide are refused by name") {
  CHECK(observe::share_mlflow_path("loss", "loss/train"));
  CHECK(observe::share_mlflow_path("loss/train", "loss"));
  CHECK(observe::share_mlflow_path("loss", "loss"));
  CHECK_FALSE(observe::share_mlflow_path("loss", "losses"));
  CHECK_FALSE(observe::share_mlflow_path("loss/train", "loss/test"));
  const auto folder = store_of("colliding");
  observe::MlflowTracker tracker;
  tracker.start({.name = "digits", .folder = folder});
  const auto log = [&](const char* name) { tracker.log({.step = 1, .time = 1, .values = {{name, 0.5}}}); };
  log("loss");
  log("loss");
  CHECK_THROWS_WITH(log("loss/train"), ContainsSubstring("The metrics 'loss' and 'loss/train' cannot both"));
  log("accuracy (%)");
  CHECK_THROWS_WITH(log("accuracy [%]"), ContainsSubstring("'accuracy (%)' and 'accuracy [%]'"));
  tracker.finish();
  fs::remove_all(folder);
}

TEST_CASE("a metric's rows hold time, value and step") {
  CHECK(observe::mlflow_metric_row(1.25, 0.5, 7) == "1250 0.5 7\n");
  CHECK(observe::step_of_mlflow_row("1250 0.5 7") == 7);
  CHECK_FALSE(observe::step_of_mlflow_row("1250 0.5"));
  CHECK_FALSE(observe::step_of_mlflow_row("1250 0.5 x"));
}

TEST_CASE("a run writes the folders of MLflow's file store") {
  const auto folder = store_of("whole");
  observe::MlflowTracker tracker;
  tracker.start({.name = "digits", .folder = folder});
  tracker.store_config({{"lr", 0.5}, {"layers", 3}, {"shuffle", true}, {"name", "a\nb"}});
  CHECK_FALSE(fs::exists(folder));  // it may still resume
  log_step(tracker, 1, 0.25);
  log_step(tracker, 2, 0.125);
  tracker.log_text("notes", "hello", 2);
  const auto runs = runs_in(folder);
  REQUIRE(runs.size() == 1);
  CHECK(content(runs[0] / "meta.yaml").find("status: 1\n") != std::string::npos);
  tracker.finish();
  CHECK(content(runs[0] / "metrics/train/loss") == "12500 0.25 1\n12500 0.125 2\n");
  CHECK(content(runs[0] / "metrics/rate") == "12500 0.1 1\n12500 0.1 2\n");
  CHECK(content(runs[0] / "params/lr") == "0.5");
  CHECK(content(runs[0] / "params/layers") == "3");
  CHECK(content(runs[0] / "params/shuffle") == "True");
  CHECK(content(runs[0] / "params/name") == "a\nb");
  CHECK(content(runs[0] / "artifacts/notes/step-2.txt") == "hello");
  CHECK(content(runs[0] / "meta.yaml").find("status: 3\n") != std::string::npos);
  CHECK(content(runs[0].parent_path() / "meta.yaml").find("name: \"digits\"\n") != std::string::npos);
  fs::remove_all(folder);
}

TEST_CASE("tables, plots and files are kept with the run") {
  const auto folder = store_of("artifacts");
  const auto given = folder / "given";
  fs::create_directories(given / "inner");
  std::ofstream(given / "inner" / "a.txt") << "inside";
  const std::string png("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\1\2\0\0\0\3more", 28);
  std::ofstream(given / "plot.png") << png;
  observe::MlflowTracker tracker;
  tracker.start({.name = "digits", .folder = folder});
  tracker.log_table("samples", {.columns = {"text", "score"}, .rows = {{"a|b\n", 0.5}, {"c", 2}}}, 3);
  tracker.log_figure("loss", given / "plot.png", 3);
  tracker.log_artifact(given / "inner");
  tracker.log_artifact(given / "inner" / "");
  tracker.log_artifact(given / "plot.png");
  const auto artifacts = runs_in(folder).at(0) / "artifacts";
  CHECK(content(artifacts / "samples/step-3.json") == R"({"columns":["text","score"],"data":[["a|b\n",0.5],["c",2]]})");
  CHECK(content(artifacts / "loss/step-3.png") == png);
  CHECK(content(artifacts / "inner/a.txt") == "inside");
  CHECK(content(artifacts / "plot.png") == png);
  CHECK(std::distance(fs::directory_iterator(artifacts), {}) == 4);
  CHECK_THROWS_WITH(tracker.log_artifact(given / "absent"), ContainsSubstring("log_artifact: there is no"));
  CHECK_THROWS_WITH(tracker.log_figure("x", given / "inner" / "a.txt", 1), ContainsSubstring("not a valid PNG file"));
  CHECK_THROWS_WITH(tracker.log_table("x", {.columns = {"a"}, .rows = {{1, 2}}}, 1),
                    ContainsSubstring("row 0 has 2 values, and there are 1 columns"));
  tracker.finish();
  fs::remove_all(folder);
}

TEST_CASE("MLflow's variables choose store, experiment, run and tags") {
  const auto folder = store_of("variables");
  const std::map<std::string, std::string> set = {{"MLFLOW_TRACKING_URI", "file://" + (folder / "store").string()},
                                                  {"MLFLOW_EXPERIMENT_NAME", "ocean"},
                                                  {"MLFLOW_RUN_ID", "run-7"},
                                                  {"MLFLOW_RUN_NAME", "first try"},
                                                  {"MLFLOW_TAGS", R"({"team": "waves", "attempt": 3})"}};
  const auto variables = [&](const char* name) -> std::optional<std::string> {
    const auto found = set.find(name);
    return found == set.end() ? std::nullopt : std::optional(found->second);
  };
  for (const double loss : {0.25, 0.5}) {  // the second run continues the first
    observe::MlflowTracker tracker(variables);
    tracker.start({.name = "digits", .folder = folder});
    log_step(tracker, loss == 0.25 ? 1 : 2, loss);
    tracker.finish();
  }
  const auto run = folder / "store" / observe::mlflow_experiment_id("ocean") / "run-7";
  CHECK(content(run / "metrics/train/loss") == "12500 0.25 1\n12500 0.5 2\n");
  CHECK(content(run / "meta.yaml").find("run_name: \"first try\"\n") != std::string::npos);
  CHECK(content(run.parent_path() / "meta.yaml").find("name: \"ocean\"\n") != std::string::npos);
  CHECK(content(run / "tags/team") == "waves");
  CHECK(content(run / "tags/attempt") == "3");
  CHECK_FALSE(fs::exists(folder / "mlruns"));
  fs::remove_all(folder);
}

TEST_CASE("variables of MLflow that cannot be followed are errors") {
  const auto with = [](const std::string& name, const std::string& value) {
    return observe::mlflow_settings([=](const char* asked) -> std::optional<std::string> {
      return asked == name ? std::optional(value) : std::nullopt;
    });
  };
  for (const auto* uri : {"http://tracking:5000", "sqlite:///runs.db", "databricks://profile"})
    CHECK_THROWS_WITH(with("MLFLOW_TRACKING_URI", uri), ContainsSubstring("reach no server or database from here"));
  CHECK(with("MLFLOW_TRACKING_URI", "file:runs").store == fs::path("runs"));
  CHECK(with("MLFLOW_TRACKING_URI", "/a/b:c").store == fs::path("/a/b:c"));
  CHECK(with("MLFLOW_TRACKING_URI", "").store == std::nullopt);
  CHECK_THROWS_WITH(with("MLFLOW_TAGS", "team=waves"), ContainsSubstring("tags are a JSON object"));
  CHECK_THROWS_WITH(with("MLFLOW_RUN_ID", "../other"), ContainsSubstring("letters, digits"));
}

TEST_CASE("a resumed run continues the newest run without later steps; another one is new") {
  const auto folder = store_of("resumed");
  for (int i = 0; i < 3; ++i) {
    observe::MlflowTracker tracker;
    tracker.start(
        {.name = "digits", .folder = folder, .last_step = i == 1 ? std::optional<std::int64_t>(1) : std::nullopt});
    tracker.store_config({{"lr", i}});
    for (std::int64_t step = i == 1 ? 2 : 1; step <= 3; ++step) log_step(tracker, step, i);
    if (i < 2) {
      const auto runs = runs_in(folder);
      REQUIRE(runs.size() == 1);
      tracker.finish();
      CHECK(content(runs[0] / "metrics/train/loss") ==
            (i == 0 ? "12500 0 1\n12500 0 2\n12500 0 3\n" : "12500 0 1\n12500 1 2\n12500 1 3\n"));
      CHECK(content(runs[0] / "params/lr") == "0");
    }
  }
  CHECK(runs_in(folder).size() == 2);
  fs::remove_all(folder);
}

TEST_CASE("a run that returns to a checkpoint removes later rows and continues") {
  const auto folder = store_of("rewound");
  observe::MlflowTracker tracker;
  tracker.start({.name = "digits", .folder = folder});
  for (std::int64_t step = 1; step <= 4; ++step) log_step(tracker, step, 1);
  tracker.flush();
  tracker.rewind(2);
  log_step(tracker, 3, 2);
  tracker.finish();
  CHECK(content(runs_in(folder).at(0) / "metrics/train/loss") == "12500 1 1\n12500 1 2\n12500 2 3\n");
  fs::remove_all(folder);
}
