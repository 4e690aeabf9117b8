#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <hortator/error.hpp>
#include <set>
#include <sstream>

#include "support/catch.hpp"
#include "tools/config/questions.hpp"
#include "tools/config/updated_file.hpp"
#include "tools/launch/supervise.hpp"
#include "tools/settings_sources.hpp"

using namespace hortator::tools;
namespace launching = hortator::launching;
namespace fs = std::filesystem;

namespace {

std::string write(const std::string& name, const std::string& content) {
  std::ofstream(name) << content;
  return name;
}

}  // namespace

TEST_CASE("a YAML file is read as entries with line numbers") {
  const auto entries = read_yaml(write("a.yaml",
                                       "# mine\n"
                                       "num_processes: 4\n"
                                       "mixed_precision: no\n"
                                       "account:\n"
                                       "modules: [gcc, 'a b']\n"
                                       "environment:\n"
                                       "  NCCL_NET: \"AWS Libfabric\"\n"));
  REQUIRE(entries.size() == 5);
  CHECK(entries[0].key == "num_processes");
  CHECK(entries[0].line == 2);
  CHECK(entries[1].values == std::vector<std::string>{"no"});
  CHECK(entries[2].values.empty());
  CHECK(entries[3].values == std::vector<std::string>{"gcc", "a b"});
  CHECK(entries[4].shape == launching::EntryShape::map);
  CHECK(entries[4].values == std::vector<std::string>{"NCCL_NET=AWS Libfabric"});
  CHECK(read_yaml(write("empty.yaml", "# nothing\n")).empty());
  CHECK(read_yaml(write("a.json", "{\"num_processes\": 2}")).size() == 1);
}

TEST_CASE("an invalid settings file is an error with its line") {
  CHECK_THROWS_WITH(read_yaml(write("bad.yaml", "a: 1\nb: [1, 2\nc: 3\n")), ContainsSubstring("bad.yaml:"));
  CHECK_THROWS_WITH(read_yaml(write("list.yaml", "- 1\n- 2\n")), ContainsSubstring("list.yaml:1: expected keys"));
  CHECK_THROWS_WITH(read_yaml(write("deep.yaml", "a: 1\nb: {c: {d: 1}}\n")),
                    ContainsSubstring("deep.yaml:2: nested values are not supported"));
  CHECK_THROWS_WITH(
      read_file(
          write("all.yaml", "environment:\n  A: {x: 1}\n  2B: 1\nmodules:\n  - [a]\n  - ''\nranks: no\ntypo_: 1\n")),
      ContainsSubstring("all.yaml has 6 errors") && ContainsSubstring("all.yaml:2: nested values") &&
          ContainsSubstring("all.yaml:3: environment: expected NAME=value") &&
          ContainsSubstring("all.yaml:5: nested values") &&
          ContainsSubstring("all.yaml:6: modules: expected a value") && ContainsSubstring("all.yaml:7: ranks: ") &&
          ContainsSubstring("all.yaml:8: unknown key 'typo_'"));
  CHECK_THROWS_WITH(read_yaml("absent.yaml"), ContainsSubstring("cannot be read"));
  CHECK_THROWS_WITH(read_yaml(write("large.yaml", "a: " + std::string(1 << 20, 'x'))),
                    ContainsSubstring("larger than 1048576 bytes"));
  CHECK_THROWS_WITH(read_yaml(write("brackets.yaml", "a: " + std::string(100'000, '['))),
                    ContainsSubstring("deeper than 64 levels"));
  std::string indented = "a:\n ";
  for (int i = 0; i < 100'000; ++i) indented += "- ";
  CHECK_THROWS_WITH(read_yaml(write("indented.yaml", indented)), ContainsSubstring("indented.yaml:"));
  CHECK_THROWS_WITH(read_file(write("typo.yaml", "\nnum_proceses: 2\n")),
                    ContainsSubstring("typo.yaml:2: unknown key 'num_proceses'; did you mean 'num_processes'?"));
}

TEST_CASE("errors in sections and lists have their own line numbers") {
  CHECK_THROWS_WITH(read_file(write("map.yaml", "account: a\nenvironment:\n  GOOD: 1\n  2BAD: 1\n")),
                    ContainsSubstring("map.yaml:4: environment: expected NAME=value, got '2BAD=1'"));
  CHECK_THROWS_WITH(read_file(write("words.yaml", "modules:\n  - gcc\n  - ''\n")), ContainsSubstring("words.yaml:3: "));
  CHECK_THROWS_WITH(read_file(write("section.yaml",
                                    "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nfsdp_config:\n"
                                    "  fsdp_version: 2\n  fsdp_ignored_modules: hea[d]\n")),
                    ContainsSubstring("section.yaml:5: fsdp_config.fsdp_ignored_modules"));
}

TEST_CASE("a setting may have the name that Slurm or Accelerate gives it") {
  const auto layer = read_file(write("names.yaml", "partition: gpu\nnum_processes: 4\ncpus_per_task: 2\n"));
  CHECK(layer.at("queue").values.at(0) == "gpu");
  CHECK(layer.at("ranks").values.at(0) == "4");
  CHECK(layer.at("threads").values.at(0) == "2");
  CHECK_THROWS_WITH(read_file(write("twice.yaml", "ranks: 2\nnum_processes: 4\n")),
                    ContainsSubstring("num_processes is given twice (num_processes is another name of ranks)"));
}

TEST_CASE("a guess about other machines is not written without being asked for") {
  const std::vector<Question> list = {{"account", "account", "abc"}, {"gpus_per_node", "GPUs", "4", true}};
  CHECK(found_answers(list).contains("account"));
  CHECK_FALSE(found_answers(list).contains("gpus_per_node"));
  std::istringstream in("\n\n");
  std::ostringstream out;
  CHECK(ask(list, in, out).at("gpus_per_node").values.at(0) == "4");
}

TEST_CASE("the output of --show can be read again") {
  const launching::Layer layer = {
      {"environment", {{"A=1,2", "B=x: y"}, "x"}}, {"modules", {{"a#b", "-c"}, "x"}}, {"account", {{"no"}, "x"}}};
  const launching::Settings settings({layer});
  const auto again = read_file(write("shown.yaml", settings.show()));
  for (const auto& [key, given] : layer) CHECK(again.at(key).values == given.values);
}

TEST_CASE("a file of Accelerate is read") {
  const auto layer =
      read_file(write("default_config.yaml",
                      "compute_environment: LOCAL_MACHINE\ndebug: false\ndistributed_type: MULTI_GPU\n"
                      "downcast_bf16: 'no'\nenable_cpu_affinity: false\ngpu_ids: all\nmachine_rank: 0\n"
                      "main_training_function: main\nmixed_precision: bf16\nnum_machines: 1\nnum_processes: 4\n"
                      "rdzv_backend: static\nsame_network: true\ntpu_env: []\ntpu_use_cluster: false\n"
                      "tpu_use_sudo: false\nuse_cpu: false\n"));
  CHECK(layer.at("ranks").values.at(0) == "4");
  CHECK(layer.at("ranks").origin == "default_config.yaml:11");
  CHECK(layer.at("mixed_precision").values.at(0) == "bf16");
  CHECK_THROWS_WITH(read_file(write("tpu.yaml", "compute_environment: LOCAL_MACHINE\ndistributed_type: XLA\n")),
                    ContainsSubstring("tpu.yaml:2: distributed_type"));
}

TEST_CASE("questions about sharding follow from the answers") {
  const auto asked = [](const std::string& stage) {
    std::vector<Question> list;
    for (const auto& question : questions()) {
      if (question.key == "zero_stage" || question.key.starts_with("offload_")) list.push_back(question);
    }
    std::istringstream in(stage + "\n\n\n\n");
    std::ostringstream out;
    ask(list, in, out);
    return out.str();
  };
  CHECK_THAT(asked("3"), ContainsSubstring("optimizer's state between steps") && ContainsSubstring("keep parameters"));
  CHECK_THAT(asked("2"), ContainsSubstring("optimizer's state between steps") && !ContainsSubstring("keep parameters"));
  CHECK_THAT(asked("0"), !ContainsSubstring("where to keep"));
  CHECK_THAT(asked(""), !ContainsSubstring("where to keep"));
  std::set<std::string> keys;
  for (const auto& question : questions()) {
    keys.insert(question.key);
    CHECK_NOTHROW(launching::find_key(question.key, ""));
  }
  for (const auto* key : {"zero_stage", "offload_optimizer", "gradient_accumulation_steps", "gradient_clipping",
                          "debug", "tensor", "context", "replicate", "recompute_layers"})
    CHECK(keys.contains(key));
}

TEST_CASE("an updated file keeps all lines but those of changed answers") {
  const std::string text =
      "# mine\nnum_processes: 4   # of this machine\nmixed_precision: bf16\nmodels:\n  net: {type: mlp}\n\nmodules: "
      "[a]\n";
  const auto entries = read_yaml(write("update.yaml", text));
  const launching::Layer answers = {
      {"ranks", {{"8"}, "answer"}}, {"mixed_precision", {{"bf16"}, "answer"}}, {"debug", {{"yes"}, "answer"}}};
  CHECK(updated_text(text, entries, answers, "update.yaml") ==
        "# mine\nnum_processes: 8   # of this machine\nmixed_precision: bf16\nmodels:\n  net: {type: mlp}\n\nmodules: "
        "[a]\n"
        "debug: yes\n");
  CHECK(updated_text(text, entries, {}, "update.yaml") == text);
  const auto json = read_yaml(write("update.json", "{\"ranks\": 4}"));
  CHECK_THROWS_WITH(updated_text("{\"ranks\": 4}", json, answers, "update.json"),
                    ContainsSubstring("update.json:1: ranks does not begin a line"));
}

TEST_CASE("an empty answer takes the default, an invalid one is asked again") {
  const std::vector<Question> list = {
      {"ranks", "ranks", "4"}, {"mixed_precision", "type", "no"}, {"account", "who pays", ""}};
  std::istringstream in("\nfp4\nbf16\n\n");
  std::ostringstream out;
  const auto answers = ask(list, in, out);
  CHECK(answers.at("ranks").values.at(0) == "4");
  CHECK(answers.at("mixed_precision").values.at(0) == "bf16");
  CHECK(!answers.contains("account"));
  CHECK_THAT(out.str(), ContainsSubstring("ranks [4]: ") && ContainsSubstring("one of no, fp16, bf16, fp8"));
  std::istringstream ended("2\n");
  CHECK_THROWS_WITH(ask(list, ended, out), ContainsSubstring("--default"));
  for (const auto& question : questions()) {
    if (!question.found.empty())
      CHECK_NOTHROW(launching::check_values(launching::find_key(question.key, ""), {question.found}, ""));
  }
}

// In a process of its own: this one's other threads (MPI's) may be given the signals.
static int supervised(const std::vector<std::string>& text, std::chrono::seconds grace = {},
                      const std::function<bool()>& has_begun = {}) {
  const pid_t child = fork();
  if (child == 0) _exit(supervise(text, {.grace = grace, .has_begun = has_begun}).code);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_CASE("supervise returns the exit code, or 128 + the signal") {
  CHECK(supervised({"sh", "-c", "exit 7"}) == 7);
  CHECK(supervised({"true"}) == 0);
  CHECK(supervised({"sh", "-c", "kill -9 $$"}) == 137);
  CHECK(supervised({"/absent/launcher"}) == 127);
}

TEST_CASE("supervise forwards signals and waits for the launcher") {
  for (const auto* name : {"USR1", "TERM"}) {
    const auto script =
        std::string("trap 'exit 9' ") + name + "; (sleep 0.2; kill -" + name + " $PPID) & while :; do sleep 0.05; done";
    CHECK(supervised({"sh", "-c", script}) == 9);
  }
}

TEST_CASE("with a grace period the first SIGTERM becomes SIGUSR1, the second is forwarded") {
  const auto script =
      "trap 'echo; warned=1' USR1; trap 'exit $((3 + ${warned:-0}))' TERM; "
      "(sleep 0.2; kill -TERM $PPID; sleep 0.3; kill -TERM $PPID) & while :; do sleep 0.05; done";
  CHECK(supervised({"sh", "-c", script}, std::chrono::seconds(60)) == 4);
  CHECK(supervised({"sh", "-c", script}) == 3);
  CHECK(supervised({"sh", "-c", "trap 'echo' USR1; (sleep 0.1; kill -TERM $PPID) & while :; do sleep 0.05; done"},
                   std::chrono::seconds(1)) == 143);
}

TEST_CASE("before the program has begun, SIGTERM ends the launcher at once and SIGUSR1 waits") {
  const auto never = [] { return false; };
  const auto ends = [](const std::string& at_term) {
    return "trap 'exit 9' USR1; " + at_term + " (sleep 0.2; kill -TERM $PPID) & while :; do sleep 0.05; done";
  };
  CHECK(supervised({"sh", "-c", ends("")}, std::chrono::seconds(60), never) == 143);
  CHECK(supervised({"sh", "-c", ends("trap 'exit 3' TERM;")}, std::chrono::seconds(60), never) == 143);
  CHECK(supervised({"sh", "-c", ends("trap 'exit 0' TERM;")}, std::chrono::seconds(60), never) == 0);
  const auto* script =
      "trap '[ -e begun ]; exit $((5 + $?))' USR1; (sleep 0.1; kill -USR1 $PPID; sleep 0.6; touch begun) & "
      "while :; do sleep 0.05; done";
  CHECK(supervised({"sh", "-c", script}, std::chrono::seconds(60), [] { return fs::exists("begun"); }) == 5);
  fs::remove("begun");
}

TEST_CASE("recorded_code returns the code of the ranks, unless the record is of an earlier run") {
  const auto before = fs::file_time_type::clock::now() - std::chrono::hours(1);
  const auto after = fs::file_time_type::clock::now() + std::chrono::hours(1);
  fs::create_directories("stopped");
  write("stopped/outcome.json", R"({"outcome": "stopped", "exit_code": 75})");
  CHECK(recorded_code("stopped", before, 143) == 75);
  CHECK(recorded_code("stopped", after, 143) == 143);
  fs::create_directories("failed");
  write("failed/failure.json", R"({"rank": 3, "exit_code": 2})");
  CHECK(recorded_code("failed", before, 137) == 2);
  write("failed/failure.json", R"({"rank": 3})");
  CHECK(recorded_code("failed", before, 137) == 137);
  write("failed/failure.json", "torn");
  CHECK(recorded_code("failed", before, 137) == 137);
  CHECK(recorded_code("absent", before, 1) == 1);
  CHECK(recorded_code("failed", before, 0) == 0);
}
