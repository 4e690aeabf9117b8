// Files of `accelerate config`, and the settings that each gives.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <hortator/error.hpp>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "core/text/text.hpp"
#include "core/whole_file.hpp"
#include "launch/settings/deepspeed_file.hpp"
#include "support/catch.hpp"
#include "tools/settings_sources.hpp"

using namespace hortator;
namespace fs = std::filesystem;

namespace {

struct AccelerateFileCase {
  const char* file = "";
  std::string outcome = "";
};

const std::vector<AccelerateFileCase>& file_cases() {
  static const std::vector<AccelerateFileCase> table = {
#include "accelerate_files.inc"
  };
  return table;
}

fs::path files_folder() { return ACCELERATE_FILES; }

std::string layer_text(const launching::Layer& layer) {
  std::vector<std::string> settings;
  for (const auto& [key, value] : layer) {
    const auto& text = value.values.front();
    settings.push_back(key + "=" + (key == "deepspeed_config" ? fs::path(text).filename().string() : text));
  }
  return text::join(settings, " ");
}

std::string file_outcome(const fs::path& file) {
  try {
    return layer_text(tools::read_file(file));
  } catch (const UsageError& error) {
    return std::string("error: ") + error.what();
  }
}

bool fits_expected(const std::string& outcome, const std::string& expected) {
  if (!expected.starts_with("error: ")) return outcome == expected;
  if (!outcome.starts_with("error: ")) return false;
  auto rest = expected.substr(7);
  for (auto end = rest.find(" | "); !rest.empty(); end = rest.find(" | ")) {
    if (outcome.find(rest.substr(0, end)) == std::string::npos) return false;
    rest = end == std::string::npos ? "" : rest.substr(end + 3);
  }
  return true;
}

launching::Layer deepspeed_layer(const std::string& text) {
  return launching::read_deepspeed_settings(text, "ds.json");
}

}  // namespace

TEST_CASE("each file of Accelerate gives the settings that Accelerate would use, or an error that names the key") {
  for (const auto& one : file_cases()) {
    const auto outcome = file_outcome(files_folder() / one.file);
    INFO(one.file << "\n  is:       " << outcome << "\n  expected: " << one.outcome);
    CHECK(fits_expected(outcome, one.outcome));
  }
}

TEST_CASE("each file of the folder has a row, except those that others name") {
  std::set<std::string> rows = {"auto.json", "no_zero.json", "alst.json"};
  for (const auto& one : file_cases()) rows.insert(one.file);
  for (const auto& entry : fs::directory_iterator(files_folder())) {
    const auto name = entry.path().filename().string();
    INFO(name);
    const bool is_of_deepspeed = name.starts_with("zero_stage") || name.starts_with("ds_config_");
    CHECK((rows.contains(name) || is_of_deepspeed));
  }
}

TEST_CASE("templates of DeepSpeed's configuration give stage, offloading, precision and accumulation") {
  for (const auto& [file, expected] :
       {std::pair("zero_stage1_config.json",
                  "gradient_accumulation_steps=1 gradient_clipping=auto mixed_precision=fp16 zero_stage=1"),
        {"zero_stage2_config.json",
         "gradient_accumulation_steps=1 gradient_clipping=auto mixed_precision=fp16 zero_stage=2"},
        {"zero_stage2_offload_config.json",
         "gradient_accumulation_steps=1 gradient_clipping=auto mixed_precision=fp16 offload_optimizer=cpu "
         "zero_stage=2"},
        {"zero_stage3_config.json",
         "gradient_accumulation_steps=1 gradient_clipping=auto mixed_precision=fp16 zero_stage=3"},
        {"zero_stage3_offload_config.json",
         "gradient_accumulation_steps=1 gradient_clipping=auto mixed_precision=fp16 offload_optimizer=cpu "
         "offload_parameters=cpu "
         "zero_stage=3"},
        {"ds_config_zero2.json",
         "gradient_accumulation_steps=1 gradient_clipping=auto offload_optimizer=cpu zero_stage=2"},
        {"ds_config_zero2_model_only.json",
         "gradient_accumulation_steps=1 gradient_clipping=auto offload_optimizer=cpu zero_stage=2"},
        {"ds_config_zero3.json",
         "gradient_accumulation_steps=1 gradient_clipping=auto offload_optimizer=cpu offload_parameters=cpu "
         "zero_stage=3"},
        {"ds_config_zero3_model_only.json", "offload_parameters=cpu zero_stage=3"}}) {
    INFO(file);
    const auto content = core::read_whole(files_folder() / file);
    REQUIRE(content);
    CHECK(layer_text(launching::read_deepspeed_settings(*content, file)) == expected);
  }
}

TEST_CASE("entries of a DeepSpeed file in other spellings, and invalid ones") {
  CHECK(layer_text(deepspeed_layer(R"({"zero_optimization": {}})")) == "zero_stage=0");
  CHECK(layer_text(deepspeed_layer(R"({"zero_optimization": {"stage": "auto"}, "gradient_clipping": 1.0})")) ==
        "gradient_clipping=1 zero_stage=2");
  CHECK(layer_text(deepspeed_layer(R"({"zero_optimization": {}, "gradient_clipping": "auto"})")) ==
        "gradient_clipping=auto zero_stage=0");
  CHECK(layer_text(deepspeed_layer(R"({"zero_optimization": {}, "gradient_clipping": 0.0})")) ==
        "gradient_clipping=0 zero_stage=0");
  CHECK(layer_text(deepspeed_layer(
            R"({"zero_optimization": {"stage": 3, "cpu_offload": true, "cpu_offload_params": true}})")) ==
        "offload_optimizer=cpu offload_parameters=cpu zero_stage=3");
  CHECK(layer_text(deepspeed_layer(R"({"zero_optimization": {"stage": 1}, "bfloat16": {"enabled": true}})")) ==
        "mixed_precision=bf16 zero_stage=1");
  CHECK(layer_text(deepspeed_layer(
            R"({"zero_optimization": {"stage": 1}, "torch_autocast": {"enabled": true, "dtype": "float16"}})")) ==
        "mixed_precision=fp16 zero_stage=1");
  CHECK(layer_text(deepspeed_layer(R"({"zero_optimization": {"stage": 3,
            "offload_optimizer": {"device": "nvme", "nvme_path": "/n"}, "offload_param": {"device": "none"}}})")) ==
        "offload_optimizer=/n zero_stage=3");
  CHECK(deepspeed_layer(R"({"zero_optimization": {"stage": 2}})").at("zero_stage").origin ==
        "ds.json: zero_optimization.stage");
  CHECK_THROWS_WITH(deepspeed_layer("{"), ContainsSubstring("ds.json is not valid JSON"));
  CHECK_THROWS_WITH(deepspeed_layer("[1]"), ContainsSubstring("zero_optimization is missing"));
  CHECK_THROWS_WITH(deepspeed_layer(R"({"zero_optimization": true})"), ContainsSubstring("is not a map of entries"));
  CHECK_THROWS_WITH(deepspeed_layer(R"({"zero_optimization": {"stage": 4}})"),
                    ContainsSubstring("ds.json: zero_optimization.stage: expected a stage from 0 to 3, got '4'"));
  CHECK_THROWS_WITH(deepspeed_layer(R"({"zero_optimization": {"stage": [2]}})"), ContainsSubstring("is not one value"));
  CHECK_THROWS_WITH(
      deepspeed_layer(R"({"zero_optimization": {"stage": 1}, "fp16": {"enabled": true}, "bf16": {"enabled": true}})"),
      ContainsSubstring("fp16.enabled and bf16.enabled are both on"));
  CHECK_THROWS_WITH(deepspeed_layer(R"({"zero_optimization": {"stage": 1}, "gradient_clipping": -1})"),
                    ContainsSubstring("ds.json: gradient_clipping"));
}

TEST_CASE("a DeepSpeed file sets what the layer that names it leaves open") {
  std::ofstream("layer.json") << R"({"zero_optimization": {"stage": 3}, "gradient_accumulation_steps": 8})";
  std::ofstream("own.yaml") << "deepspeed_config: layer.json\nzero_stage: 1\n";
  const auto layer = tools::read_file("own.yaml");
  CHECK(layer.at("zero_stage").values.front() == "1");
  CHECK(layer.at("gradient_accumulation_steps").values.front() == "8");
  CHECK(fs::path(layer.at("deepspeed_config").values.front()).is_absolute());
}
