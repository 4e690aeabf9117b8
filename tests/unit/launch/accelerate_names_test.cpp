#include "launch/settings/accelerate_names.hpp"

#include "launch/settings/accelerate_file.hpp"
#include "launch/settings/accelerate_sharding.hpp"
#include "launch/settings/keys.hpp"

#include <hortator/error.hpp>
#include <set>

#include "support/catch.hpp"

using namespace hortator::launching;

namespace {

ConfigEntry entry(const std::string& key, const std::string& text) { return {key, 1, EntryShape::scalar, {text}}; }

/// The entry in a file whose distributed_type selects its section. The remark of the entry is the first one.
AccelerateFile read(const std::string& key, const std::string& text) {
  const auto* type = key.starts_with("deepspeed") ? "DEEPSPEED" : key.starts_with("fsdp") ? "FSDP" : "MULTI_GPU";
  std::vector<ConfigEntry> entries = {entry(key, text)};
  if (key != "distributed_type") entries.push_back({"distributed_type", 2, EntryShape::scalar, {type}});
  return read_accelerate_file(entries, "f");
}

Support support(const std::string& key, const std::string& text) { return read(key, text).remarks.at(0).support; }

std::string value(const AccelerateFile& file, const std::string& key) {
  const auto given = file.layer.find(key);
  return given == file.layer.end() ? "none" : given->second.values.at(0);
}

}  // namespace

TEST_CASE("a file of Accelerate is recognised by its own keys") {
  CHECK(is_accelerate_file({entry("num_processes", "2"), entry("distributed_type", "NO")}));
  CHECK(is_accelerate_file({entry("compute_environment", "LOCAL_MACHINE")}));
  CHECK(!is_accelerate_file({entry("num_processes", "2")}));
}

TEST_CASE("settings with the same meaning are honoured") {
  CHECK(value(read("num_processes", "8"), "ranks") == "8");
  CHECK(value(read("mixed_precision", "bf16"), "mixed_precision") == "bf16");
  CHECK(value(read("use_cpu", "true"), "cpu") == "true");
  CHECK(value(read("deepspeed_config.zero_stage", "2"), "zero_stage") == "2");
  CHECK(value(read("deepspeed_config.gradient_accumulation_steps", "4"), "gradient_accumulation_steps") == "4");
  CHECK(value(read("mpirun_config.mpirun_hostfile", "hosts"), "hostfile") == "hosts");
  CHECK(read("num_processes", "8").layer.at("ranks").origin == "f:1");
}

TEST_CASE("sharding strategies become ZeRO stages") {
  for (const auto& [text, stage] : {std::pair("FULL_SHARD", "3"),
                                    {"1", "3"},
                                    {"SHARD_GRAD_OP", "2"},
                                    {"NO_SHARD", "0"},
                                    {"HYBRID_SHARD", "HYBRID_SHARD"},
                                    {"5", "HYBRID_SHARD_ZERO2"}}) {
    CHECK(value(read("fsdp_config.fsdp_sharding_strategy", text), "zero_stage") == stage);
  }
  CHECK(value(read("fsdp_config.fsdp_reshard_after_forward", "true"), "zero_stage") == "3");
  CHECK(value(read("fsdp_config.fsdp_reshard_after_forward", "false"), "zero_stage") == "2");
  CHECK(support("fsdp_config.fsdp_sharding_strategy", "HYBRID_SHART") == Support::refused);
}

TEST_CASE("ParallelismConfig's sizes are axes of the mesh, and 1 sets nothing") {
  const auto of = [](const std::string& axis, const std::string& size) {
    return read("parallelism_config.parallelism_config_" + axis + "_size", size);
  };
  for (const auto& [axis, key] : {std::pair("dp_replicate", "replicate"),
                                  {"dp_shard", "shard"},
                                  {"tp", "tensor"},
                                  {"cp", "context"},
                                  {"sp", "context"}}) {
    CHECK(value(of(axis, "2"), key) == "2");
    const auto unused = of(axis, "1");
    CHECK(value(unused, key) == "none");
    CHECK(unused.remarks.at(0).support == Support::noted);
    CHECK(of(axis, "two").remarks.at(0).support == Support::refused);
  }
  const auto both = read_accelerate_file(
      {entry("distributed_type", "FSDP"), entry("parallelism_config.parallelism_config_cp_size", "2"),
       entry("parallelism_config.parallelism_config_sp_size", "2")},
      "f");
  CHECK_THROWS_WITH(throw_if_refused(both, "f"), ContainsSubstring("exclude each other"));
}

TEST_CASE("unsupported settings are refused with the alternative") {
  for (const auto& [key, text] : {std::pair("distributed_type", "XLA"),
                                  {"distributed_type", "MULTI_XPU"},
                                  {"compute_environment", "AMAZON_SAGEMAKER"},
                                  {"mixed_precision", "fp4"},
                                  {"fsdp_config.fsdp_activation_checkpointing_offload", "true"},
                                  {"unheard_of", "1"}}) {
    const auto file = read(key, text);
    CHECK(file.remarks.at(0).support == Support::refused);
    CHECK(!file.remarks.at(0).text.empty());
    CHECK(!file.layer.contains("mixed_precision"));
    CHECK_THROWS_WITH(throw_if_refused(file, "f"), ContainsSubstring("f:1: ") && ContainsSubstring(key));
  }
  CHECK_THAT(read("mixed_precision", "fp4").remarks.at(0).text, ContainsSubstring("bf16"));
}

TEST_CASE("settings of unused features are accepted") {
  for (const auto& [key, text] : {std::pair("tpu_use_cluster", "true"),
                                  {"tpu_name", "pod"},
                                  {"downcast_bf16", "yes"},
                                  {"fp8_config.fp8_format", "HYBRID"},
                                  {"megatron_lm_config.megatron_lm_tp_degree", "2"},
                                  {"deepspeed_config.offload_param_device", "none"}}) {
    CHECK(support(key, text) != Support::refused);
  }
  CHECK(
      read_accelerate_file({{"tpu_env", 1, EntryShape::list, {}}, {"main_process_ip", 2}}, "f").remarks.at(0).support ==
      Support::noted);
}

TEST_CASE("a section has an effect only if distributed_type selects it") {
  const auto file = read_accelerate_file({entry("distributed_type", "NO"), entry("deepspeed_config.zero_stage", "3"),
                                          entry("deepspeed_config.deepspeed_config_file", "absent"),
                                          entry("fsdp_config.fsdp_sharding_strategy", "FULL_SHARD")},
                                         "f");
  CHECK(file.layer.size() == 1);
  CHECK(value(file, "ranks") == "1");
  CHECK_NOTHROW(throw_if_refused(file, "f"));
  CHECK_THROWS_WITH(throw_if_refused(read_accelerate_file({entry("compute_environment", "LOCAL_MACHINE")}, "f"), "f"),
                    ContainsSubstring("distributed_type"));
}

TEST_CASE("every spelling of true and false counts, and 1 is true unless it is a degree") {
  for (const auto* yes : {"true", "True", "TRUE", "1", "yes", "on", "y", "t"}) {
    CHECK(value(read("fsdp_config.fsdp_offload_params", yes), "offload_parameters") == "cpu");
    CHECK(value(read("fsdp_config.fsdp_activation_checkpointing", yes), "recompute_layers") == "all");
    CHECK(value(read("use_cpu", yes), "cpu") == yes);
  }
  for (const auto* no : {"false", "False", "0", "no", "off", "n", "f", "None"}) {
    CHECK(value(read("fsdp_config.fsdp_offload_params", no), "offload_parameters") == "none");
    CHECK(value(read("fsdp_config.fsdp_activation_checkpointing", no), "recompute_layers") == "none");
  }
  CHECK(support("fsdp_config.fsdp_offload_params", "perhaps") == Support::refused);
  for (const auto* norm : {"1", "1.0", "0.5", "1e-1"})
    CHECK(value(read("deepspeed_config.gradient_clipping", norm), "gradient_clipping") == norm);
  for (const auto* off : {"0", "false"})
    CHECK(value(read("deepspeed_config.gradient_clipping", off), "gradient_clipping") == "0");
  CHECK(value(read("deepspeed_config.gradient_clipping", "auto"), "gradient_clipping") == "auto");
  CHECK(support("deepspeed_config.gradient_clipping", "none") == Support::refused);
  CHECK(support("deepspeed_config.gradient_clipping", "-1") == Support::refused);
  CHECK(is_unused_in_accelerate(*accelerate_flag("megatron_lm_tp_degree"), "1"));
  CHECK(!is_unused_in_accelerate(*accelerate_flag("tpu_use_sudo"), "1"));
}

TEST_CASE("FSDP shards fully and DeepSpeed has stage 2 unless another is named") {
  CHECK(value(read("distributed_type", "FSDP"), "zero_stage") == "3");
  CHECK(value(read("distributed_type", "DEEPSPEED"), "zero_stage") == "2");
  CHECK(value(read("distributed_type", "MULTI_GPU"), "zero_stage") == "none");
  CHECK(value(read("distributed_type", "DEEPSPEED"), "gradient_clipping") == "auto");
  CHECK(value(read("distributed_type", "FSDP"), "gradient_clipping") == "none");
  CHECK(read("distributed_type", "FSDP").layer.at("zero_stage").origin == "f:1");
  for (const auto* stage : {"0", "1", "2", "3"})
    CHECK(value(read("deepspeed_config.zero_stage", stage), "zero_stage") == stage);
  for (const auto* bad : {"4", "-1", "two", "33"})
    CHECK(support("deepspeed_config.zero_stage", bad) == Support::refused);
}

// All combinations of stage, devices and paths.
TEST_CASE("DeepSpeed's offloading") {
  for (int stage = 0; stage <= 3; ++stage) {
    for (const auto* device : {"none", "cpu", "nvme", "disk"}) {
      for (const bool has_path : {false, true}) {
        AccelerateValues given = {{"zero_stage", {std::to_string(stage), "o"}},
                                  {"offload_param_device", {device, "o"}}};
        if (has_path) given["offload_param_nvme_path"] = {"/n", "o"};
        const auto plan = plan_deepspeed(given, "o");
        const std::string name = device;
        const bool is_wrong = name == "disk" || (name == "nvme" && !has_path);
        CHECK(plan.refused.contains("offload_param_device") == is_wrong);
        const bool has_effect = !is_wrong && name != "none" && stage == 3;
        CHECK(plan.layer.contains("offload_parameters") == has_effect);
        if (has_effect) CHECK(plan.layer.at("offload_parameters").values.front() == (name == "nvme" ? "/n" : "cpu"));
      }
    }
  }
}

TEST_CASE("one machine and -1 processes are ignored") {
  CHECK(value(read("num_machines", "1"), "nodes") == "none");
  CHECK(value(read("num_processes", "-1"), "ranks") == "none");
  CHECK(value(read("num_machines", "2"), "nodes") == "2");
}

TEST_CASE("sections are opened into their keys") {
  const auto opened =
      open_sections({{"fsdp_config", 3, EntryShape::map, {"fsdp_version=2", "fsdp_offload_params="}, {4, 6}}});
  REQUIRE(opened.size() == 2);
  CHECK(opened[0].key == "fsdp_config.fsdp_version");
  CHECK(opened[0].values.at(0) == "2");
  CHECK(opened[1].values.empty());
  CHECK(opened[0].line == 4);
  CHECK(opened[1].line == 6);
}

TEST_CASE("each name is in the table once, with a key of Hortator or a note") {
  std::set<std::string_view> names;
  for (const auto& row : accelerate_names()) {
    CHECK(names.insert(row.name).second);
    if (row.key.empty()) {
      CHECK(!row.text.empty());
    } else {
      CHECK_NOTHROW(find_key(row.key, ""));
    }
  }
}

TEST_CASE("flags of accelerate launch are known, with the names of switches among those without effect") {
  REQUIRE(accelerate_flag("num_processes") != nullptr);
  CHECK(accelerate_flag("num_processes")->key == "ranks");
  CHECK(accelerate_flag("use_cpu") == nullptr);  // only in files
  CHECK(accelerate_flag("nonsense") == nullptr);
  for (const auto* name : {"quiet", "multi_gpu", "same_network", "no_python"}) {
    REQUIRE(accelerate_flag(name) != nullptr);
    CHECK(accelerate_flag(name)->support == Support::noted);
    CHECK(is_accelerate_switch(name));
  }
  for (const auto* name : {"main_process_port", "machine_rank", "fsdp_version"})
    CHECK_FALSE(is_accelerate_switch(name));
  CHECK(is_accelerate_switch("use_fsdp"));
  CHECK_FALSE(value_from_accelerate(*accelerate_flag("mixed_precision"), "fp4").has_value());
}

TEST_CASE("recipes of fp8 are those of Accelerate's file, where mixed_precision is fp8") {
  const auto recipe = [](const char* precision) {
    return read_accelerate_file(
        {entry("mixed_precision", precision), entry("fp8_config.backend", "TE"), entry("fp8_config.fp8_format", "E4M3"),
         entry("fp8_config.amax_history_len", "16"), entry("fp8_config.amax_compute_algo", "max"),
         entry("fp8_config.use_autocast_during_eval", "true"), entry("fp8_config.interval", "1")},
        "f");
  };
  const auto file = recipe("fp8");
  CHECK(value(file, "mixed_precision") == "fp8");
  CHECK(value(file, "fp8_scaling") == "delayed");
  CHECK(value(file, "fp8_format") == "E4M3");
  CHECK(value(file, "fp8_amax_history_len") == "16");
  CHECK(value(file, "fp8_amax_compute_algo") == "max");
  CHECK(!recipe("bf16").layer.contains("fp8_scaling"));
  CHECK_FALSE(value_from_accelerate(*accelerate_flag("fp8_backend"), "MSAMP").has_value());
  CHECK(value_from_accelerate(*accelerate_flag("fp8_backend"), "AO") == "dynamic");
}

TEST_CASE("FSDP's ignored modules are names of text, .* and |, and other expressions are refused") {
  const auto names = [](const std::string& expression) {
    return plan_fsdp({{"fsdp_ignored_modules", {.text = expression, .origin = "f"}}}, "FSDP");
  };
  const auto ignored = [&](const std::string& expression) {
    return names(expression).layer.at("zero_ignore").values.at(0);
  };
  CHECK(ignored("head") == "head");
  CHECK(ignored("model\\.embed_tokens|.*\\.mlp") == "model.embed_tokens,*.mlp");
  CHECK(ignored("layers.0.attn-in") == "layers.0.attn-in");
  for (const auto* expression : {"hea[d]", "(a|b)", "layers\\.\\d+", "a+", "a.?", "^a$"}) {
    INFO(expression);
    CHECK_THAT(names(expression).refused.at("fsdp_ignored_modules"), ContainsSubstring("zero.ignore"));
    CHECK(!names(expression).layer.contains("zero_ignore"));
  }
  CHECK(!names("null").layer.contains("zero_ignore"));
}
