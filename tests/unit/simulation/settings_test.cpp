#include "simulation/settings/run_settings.hpp"

#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::simulation;

namespace {

Section section_of(const std::string& yaml) { return {parse_settings(yaml, "sim.yaml"), "sim.yaml", ""}; }

RunSettings run_settings_of(const std::string& yaml) {
  return read_run_settings(parse_settings(yaml, "sim.yaml"), "sim.yaml");
}

template <typename Work>
std::string usage_error(const Work& work) {
  try {
    work();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("the run folder is that of the settings, of HORTATOR_RUN_DIR, or has the settings' name") {
  const auto folder = [](const std::string& yaml, const std::string& asked) {
    return read_run_settings(parse_settings(yaml, "sim.yaml"), "sim.yaml", asked).options.project.dir;
  };
  CHECK(folder("run_dir: mine", "asked") == "mine");
  CHECK(folder("seed: 1", "asked") == "asked");
  CHECK(folder("seed: 1", "") == "runs/sim");
}

TEST_CASE("a section reads each kind of value", "[simulation]") {
  const auto section = section_of("a: 3\nb: 0.5\nc: [1, 2]\nd: yes\ne: {f: text}\ng:\n");
  CHECK(section.integer("a", 1) == 3);
  CHECK(section.number("b") == 0.5);
  CHECK(section.integers("c", 1) == std::vector<std::int64_t>{1, 2});
  CHECK(section.flag("d", false));
  CHECK(section.section("e")->text("f") == "text");
  CHECK_FALSE(section.has("g"));  // null: not set
  CHECK(section.integer("h", 1, 7) == 7);
  CHECK_NOTHROW(section.finish());
}

TEST_CASE("a wrong value is an error with its file, line and key", "[simulation]") {
  const auto section = section_of("a: x\nb: {lr: x}\n");
  CHECK(usage_error([&] { section.integer("a", 1); }).find("sim.yaml:1: a: expected a whole number from 1, got 'x'") ==
        0);
  CHECK(usage_error([&] { section.section("b")->number("lr"); }).find("sim.yaml:2: b.lr: expected a number") == 0);
  for (const auto* wrong : {"nan", "inf", "0x10", "\" 1\"", "\"0,5\"", "\"\"", "+-1", "1e999"}) {
    INFO(wrong);
    CHECK(usage_error([&] { section_of(std::string("a: ") + wrong + "\n").number("a"); }).find("expected a number") !=
          std::string::npos);
  }
  CHECK(section_of("a: +.5e1\n").number("a") == 5);
  CHECK(usage_error([&] { section.text("missing"); }).find("'missing' is missing") != std::string::npos);
  CHECK(usage_error([] { section_of("a: 1\na: 2\n"); }).find("sim.yaml:2: a is given twice") == 0);
  CHECK(usage_error([] { section_of("- a\n"); }).find("expected lines") != std::string::npos);
}

TEST_CASE("an unknown key names the nearest known one", "[simulation]") {
  const auto section = section_of("optimizr: adam\nloss: mse\n");
  section.has("optimizer");
  section.has("loss");
  CHECK(usage_error([&] { section.finish(); }) == "sim.yaml:1: optimizr is not a known key; did you mean 'optimizer'?");
}

TEST_CASE("an unknown key at the top of a file names the nearest known one", "[simulation]") {
  CHECK(usage_error([] { run_settings_of("bufers: {}\n"); }).find("did you mean 'buffers'?") != std::string::npos);
  CHECK(usage_error([] {
          run_settings_of("checkpoints: {asynchronos: true}\n");
        }).find("did you mean 'asynchronous'?") != std::string::npos);
}

TEST_CASE("a run takes the launcher's keys that a program must know, and ignores the others", "[simulation]") {
  const auto settings = run_settings_of(
      "ranks: 4\nmixed_precision: bf16\nzero_stage: 2\ngradient_accumulation_steps: 3\ncpu: true\nrun_dir: here\n"
      "checkpoints: {asynchronous: true, keep: 2}\ntrackers: [csv]\nseed: 9\n");
  CHECK(settings.options.mixed_precision == Precision::bf16);
  CHECK(settings.options.zero.stage == 2);
  CHECK(settings.options.gradient_accumulation_steps == 3);
  CHECK(settings.options.cpu);
  CHECK(settings.options.project.dir == "here");
  CHECK(settings.options.project.total_limit == 2);
  CHECK(settings.options.checkpoint.asynchronous);
  CHECK(settings.options.log_with.size() == 1);
  CHECK(settings.seed == 9);
  CHECK(run_settings_of("").options.project.dir == "runs/sim");
}

TEST_CASE("a run reads what it does about NaN, its models' threads and how it resumes", "[simulation]") {
  const auto usual = run_settings_of("");
  CHECK(usual.on_nonfinite == NonfiniteStep::skip);
  CHECK_FALSE(usual.model_threads);
  CHECK_FALSE(usual.resumes_partly);
  const auto settings = run_settings_of("on_nonfinite: fail\nmodel_threads: 4\ncheckpoints: {resume: partly}\n");
  CHECK(settings.on_nonfinite == NonfiniteStep::fail);
  CHECK(settings.model_threads == 4);
  CHECK(settings.resumes_partly);
  CHECK(usual.options.protection.on_nonfinite == OnNonfinite::skip);
  CHECK(run_settings_of("on_nonfinite: proceed\n").options.protection.on_nonfinite == OnNonfinite::proceed);
  CHECK(usage_error([] { run_settings_of("on_nonfinite: skp\n"); }).find("did you mean 'skip'?") != std::string::npos);
  CHECK(usage_error([] { run_settings_of("model_threads: 0\n"); }).find("expected a whole number from 1") !=
        std::string::npos);
}

TEST_CASE("a model that the settings do not have is an error with the nearest name", "[simulation]") {
  const auto settings = run_settings_of("models: {closure: {type: mlp}}\n");
  CHECK(settings.model("closure").text("type") == "mlp");
  CHECK(usage_error([&] { settings.model("closur"); }).find("did you mean 'closure'?") != std::string::npos);
  CHECK(usage_error([&] { settings.buffer("samples"); }).find("buffers has no entry 'samples'") != std::string::npos);
}
