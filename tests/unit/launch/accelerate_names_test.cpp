#include "launch/settings/accelerate_names.hpp"

#include <hortator/error.hpp>
#include <set>

#include "support/catch.hpp"

using namespace hortator::launching;

namespace {

ConfigEntry entry(const std::string& key, const std::string& text) { return {key, 1, EntryShape::scalar, {text}}; }

AccelerateFile read(const std::string& key, const std::string& text) {
  return read_accelerate_file({entry(key, text)}, "f");
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

TEST_CASE("ParallelismConfig's sizes are axes of the mesh, and 1 is no setting") {
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
    CHECK(unused.layer.empty());
    CHECK(unused.remarks.at(0).support == Support::noted);
    CHECK(of(axis, "two").remarks.at(0).support == Support::refused);
  }
  const auto both = read_accelerate_file({entry("parallelism_config.parallelism_config_cp_size", "2"),
                                          entry("parallelism_config.parallelism_config_sp_size", "2")},
                                         "f");
  CHECK_THROWS_WITH(throw_if_refused(both, "f"), ContainsSubstring("exclude each other"));
}

TEST_CASE("unsupported settings are refused with the alternative") {
  for (const auto& [key, text] : {std::pair("distributed_type", "XLA"),
                                  {"distributed_type", "MULTI_XPU"},
                                  {"distributed_type", "MEGATRON_LM"},
                                  {"compute_environment", "AMAZON_SAGEMAKER"},
                                  {"mixed_precision", "fp8"},
                                  {"tpu_use_cluster", "true"},
                                  {"fp8_config.fp8_format", "HYBRID"},
                                  {"megatron_lm_config.megatron_lm_tp_degree", "2"},
                                  {"unheard_of", "1"}}) {
    const auto file = read(key, text);
    CHECK(file.remarks.at(0).support == Support::refused);
    CHECK(!file.remarks.at(0).text.empty());
    CHECK(file.layer.empty());
    CHECK_THROWS_WITH(throw_if_refused(file, "f"), ContainsSubstring("f:1: ") && ContainsSubstring(key));
  }
  CHECK_THAT(read("mixed_precision", "fp8").remarks.at(0).text, ContainsSubstring("bf16"));
}

TEST_CASE("settings of unused features are accepted") {
  for (const auto& [key, text] : {std::pair("tpu_use_cluster", "false"),
                                  {"tpu_use_sudo", "no"},
                                  {"downcast_bf16", "no"},
                                  {"megatron_lm_config.megatron_lm_tp_degree", "1"},
                                  {"deepspeed_config.offload_param_device", "none"}}) {
    CHECK(support(key, text) == Support::noted);
  }
  CHECK(
      read_accelerate_file({{"tpu_env", 1, EntryShape::list, {}}, {"main_process_ip", 2}}, "f").remarks.at(0).support ==
      Support::noted);
}

TEST_CASE("one machine and -1 processes are ignored") {
  CHECK(read("num_machines", "1").layer.empty());
  CHECK(read("num_processes", "-1").layer.empty());
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
  for (const auto* name : {"quiet", "multi_gpu", "same_network", "use_fsdp", "no_python"}) {
    REQUIRE(accelerate_flag(name) != nullptr);
    CHECK(accelerate_flag(name)->support == Support::noted);
    CHECK(is_accelerate_switch(name));
  }
  for (const auto* name : {"main_process_port", "machine_rank", "fsdp_version"})
    CHECK_FALSE(is_accelerate_switch(name));
  CHECK(value_from_accelerate(*accelerate_flag("fsdp_sharding_strategy"), "SHARD_GRAD_OP") == "2");
  CHECK_FALSE(value_from_accelerate(*accelerate_flag("mixed_precision"), "fp8").has_value());
}
