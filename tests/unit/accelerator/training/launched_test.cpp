#include "accelerator/training/launched.hpp"

#include <fstream>
#include <hortator/error.hpp>
#include <map>

#include "support/catch.hpp"

using namespace hortator;

namespace {

core::Variables lookup(const std::map<std::string, std::string>& variables) {
  return [variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

AcceleratorOptions with(const std::map<std::string, std::string>& variables, const AcceleratorOptions& options = {}) {
  return accelerator::launched(options, lookup(variables)).options;
}

}  // namespace

TEST_CASE("the launcher's variables reach the options") {
  CHECK(with({}, {.gradient_accumulation_steps = 3}).gradient_accumulation_steps == 3);
  CHECK(with({{"HORTATOR_GRADIENT_ACCUMULATION_STEPS", "4"}}, {.gradient_accumulation_steps = 3})
            .gradient_accumulation_steps == 4);
  CHECK(with({{"HORTATOR_GRADIENT_ACCUMULATION_STEPS", ""}}).gradient_accumulation_steps == 1);
}

TEST_CASE("a launch's interval of checkpoints, in steps or in time, replaces the program's") {
  using namespace std::chrono_literals;
  const AcceleratorOptions own = {.checkpoint = {.every_steps = 7, .every = 7s},
                                  .memory_checkpoint = {.every_steps = 7, .every = 7s},
                                  .local_checkpoint = {.every_steps = 7, .every = 7s}};
  const auto intervals = [](const AcceleratorOptions& options) {
    std::string all;
    const auto add = [&](const auto& one) {
      all += std::to_string(one.every_steps) + " or " + std::to_string(one.every.count()) + "; ";
    };
    add(options.checkpoint);
    add(options.memory_checkpoint);
    add(options.local_checkpoint);
    return all;
  };
  CHECK(intervals(with({}, own)) == "7 or 7000; 7 or 7000; 7 or 7000; ");
  CHECK(intervals(with({{"HORTATOR_PROJECT_CHECKPOINT", "1h"},
                        {"HORTATOR_MEMORY_CHECKPOINT", "10"},
                        {"HORTATOR_LOCAL_CHECKPOINT", "1.5min"}},
                       own)) == "0 or 3600000; 10 or 0; 0 or 90000; ");
  for (const char* bad : {"0", "-1", "0s", "1.5", "10 steps", "30 parsecs", "s", "99999999999"}) {
    CHECK_THROWS_WITH(
        with({{"HORTATOR_MEMORY_CHECKPOINT", bad}}),
        ContainsSubstring("HORTATOR_MEMORY_CHECKPOINT: expected a number of steps, such as 10, or a time, "
                          "such as 30s, 10min or 1h, got '" +
                          std::string(bad) + "'"));
  }
}

TEST_CASE("a run of a scaling study does not use the program's own folder") {
  const ProjectOptions own = {.dir = "runs/mine", .total_limit = 3, .logging_dir = "logs"};
  CHECK(with({{"HORTATOR_RUN_DIR", "study"}}, {.project = own}).project.dir == "runs/mine");
  const auto measured = with({{"HORTATOR_RUN_DIR", "study"}, {"HORTATOR_MEASURE", "m.json"}}, {.project = own}).project;
  CHECK(measured.dir == "study");
  CHECK(measured.logging_dir.empty());
  CHECK(measured.total_limit == 3);
  CHECK(with({{"HORTATOR_MEASURE", "m.json"}}, {.project = own}).project.dir == "runs/mine");
}

TEST_CASE("an invalid value is an error that names the variable") {
  for (const auto* bad : {"0", "-1", "two", "1.5"}) {
    CHECK_THROWS_WITH(with({{"HORTATOR_GRADIENT_ACCUMULATION_STEPS", bad}}),
                      ContainsSubstring("ACCUMULATION_STEPS: expected a whole number from 1"));
  }
  CHECK_THROWS_WITH(with({{"HORTATOR_ZERO_STAGE", "4"}}),
                    ContainsSubstring("HORTATOR_ZERO_STAGE: expected one of 0, 1, 2, 3"));
  CHECK_THROWS_WITH(with({{"HORTATOR_ZERO_STAGE", "4"}}, {.zero = {.stage = 1}}),
                    ContainsSubstring("HORTATOR_ZERO_STAGE: expected one of 0, 1, 2, 3"));
}

TEST_CASE("the launcher's axes of the mesh apply where the program sets none") {
  const auto axes = with({{"HORTATOR_TENSOR", "2"}, {"HORTATOR_REPLICATE", "4"}, {"HORTATOR_SHARD", ""}}).parallel;
  CHECK(axes.tensor == 2);
  CHECK(axes.replicate == 4);
  CHECK(!axes.shard);
  CHECK(with({{"HORTATOR_TENSOR", "2"}}, {.parallel = {.tensor = 4}}).parallel.tensor == 4);
  CHECK(with({{"HORTATOR_CONTEXT", "3"}, {"HORTATOR_PIPELINE", "5"}}).parallel.context == 3);
  CHECK(with({{"HORTATOR_EXPERTS", "4"}}).parallel.experts == 4);
  CHECK(with({{"HORTATOR_CONTEXT_ATTENTION", "ring"}}).parallel.context_attention == ContextAttention::ring);
  CHECK(with({{"HORTATOR_CONTEXT_ATTENTION", "ring"}}, {.parallel = {.context_attention = ContextAttention::gather}})
            .parallel.context_attention == ContextAttention::gather);
  CHECK_THROWS_WITH(with({{"HORTATOR_CONTEXT_ATTENTION", "rings"}}),
                    ContainsSubstring("HORTATOR_CONTEXT_ATTENTION: expected one of gather, ring, got 'rings'"));
  for (const auto* bad : {"0", "-2", "two", "1.5"})
    CHECK_THROWS_WITH(with({{"HORTATOR_TENSOR", bad}}),
                      ContainsSubstring("HORTATOR_TENSOR: expected a whole number from 1"));
}

TEST_CASE("variables of Accelerate's launcher apply where Hortator's own are not set") {
  const auto steps = [](const std::map<std::string, std::string>& variables) {
    return with(variables).gradient_accumulation_steps;
  };
  CHECK(steps({{"ACCELERATE_GRADIENT_ACCUMULATION_STEPS", "5"}}) == 5);
  CHECK(steps({{"ACCELERATE_GRADIENT_ACCUMULATION_STEPS", "5"}, {"HORTATOR_GRADIENT_ACCUMULATION_STEPS", "2"}}) == 2);
  CHECK_THROWS_WITH(
      steps({{"ACCELERATE_GRADIENT_ACCUMULATION_STEPS", "auto"}}),
      ContainsSubstring("ACCELERATE_GRADIENT_ACCUMULATION_STEPS: expected a whole number from 1, got 'auto'"));

  const auto stage = [](std::map<std::string, std::string> variables) { return with(variables).zero.stage; };
  CHECK(!stage({{"ACCELERATE_USE_FSDP", "false"}, {"FSDP_SHARDING_STRATEGY", "FULL_SHARD"}}));
  CHECK(!stage({{"ACCELERATE_DEEPSPEED_ZERO_STAGE", "3"}}));
  CHECK(stage({{"ACCELERATE_USE_FSDP", "true"}}) == 3);
  for (const auto& [strategy, expected] : std::map<std::string, int>{
           {"1", 3}, {"2", 2}, {"3", 0}, {"4", 3}, {"5", 2}, {"SHARD_GRAD_OP", 2}, {"shard_grad_op", 2}}) {
    CHECK(stage({{"ACCELERATE_USE_FSDP", "true"}, {"FSDP_SHARDING_STRATEGY", strategy}}) == expected);
  }
  const auto second = [&](const char* reshard) {
    return stage({{"ACCELERATE_USE_FSDP", "1"}, {"FSDP_VERSION", "2"}, {"FSDP_RESHARD_AFTER_FORWARD", reshard}});
  };
  CHECK(second("true") == 3);
  CHECK(second("false") == 2);
  CHECK(second("") == 3);
  CHECK(stage({{"ACCELERATE_USE_DEEPSPEED", "true"}}) == 2);
  CHECK(stage({{"ACCELERATE_USE_DEEPSPEED", "true"}, {"ACCELERATE_DEEPSPEED_ZERO_STAGE", "1"}}) == 1);
  CHECK(stage({{"ACCELERATE_USE_DEEPSPEED", "true"}, {"HORTATOR_ZERO_STAGE", "3"}}) == 3);
  CHECK(with({{"ACCELERATE_USE_FSDP", "true"}}, {.zero = {.stage = 0}}).zero.stage == 0);
  CHECK_THROWS_WITH(stage({{"ACCELERATE_USE_FSDP", "perhaps"}}), ContainsSubstring("ACCELERATE_USE_FSDP is 'perhaps'"));
  CHECK_THROWS_WITH(stage({{"ACCELERATE_USE_FSDP", "true"}, {"FSDP_SHARDING_STRATEGY", "6"}}),
                    ContainsSubstring("FSDP_SHARDING_STRATEGY is '6'"));
}

TEST_CASE("what the launcher asks to offload applies where the program says nothing") {
  const auto zero = with({{"HORTATOR_ZERO_STAGE", "3"},
                          {"HORTATOR_OFFLOAD_OPTIMIZER", "cpu"},
                          {"HORTATOR_OFFLOAD_PARAMETERS", "/scratch"}})
                        .zero;
  CHECK(zero.offload_optimizer == "cpu");
  CHECK(zero.offload_parameters == "/scratch");
  CHECK(with({{"HORTATOR_OFFLOAD_OPTIMIZER", "cpu"}}, {.zero = {.stage = 1, .offload_optimizer = "/fast"}})
            .zero.offload_optimizer == "/fast");
  CHECK(with({{"HORTATOR_INT8_GATHERS", "true"}}, {.zero = {.stage = 3}}).zero.int8_gathers);
  CHECK(!with({{"HORTATOR_INT8_GATHERS", "0"}}).zero.int8_gathers);
  CHECK(with({{"HORTATOR_INT8_GATHERS", "0"}}, {.zero = {.int8_gathers = true}}).zero.int8_gathers);
  using Names = std::vector<std::string>;
  CHECK(with({{"HORTATOR_ZERO_IGNORE", "head,*.norm,"}}).zero.ignore == Names{"head", "*.norm"});
  CHECK(with({{"HORTATOR_ZERO_IGNORE", "head"}}, {.zero = {.ignore = {"own"}}}).zero.ignore == Names{"own"});
  CHECK(with({{"HORTATOR_RECORD_OPERATORS", "runs/two"}, {"HORTATOR_RECORD_STEP", "3"}}).record.step == 3);
  CHECK(with({{"HORTATOR_RECORD_OPERATORS", "runs/two"}}, {.record = {.operators = "own"}}).record.operators == "own");
  CHECK_THROWS_WITH(with({{"HORTATOR_INT8_GATHERS", "8"}}), ContainsSubstring("HORTATOR_INT8_GATHERS"));

  const auto fsdp = with({{"ACCELERATE_USE_FSDP", "true"}, {"FSDP_OFFLOAD_PARAMS", "True"}}).zero;
  CHECK(fsdp.offload_optimizer == "cpu");
  CHECK(fsdp.offload_parameters == "cpu");
  const auto grads = with({{"ACCELERATE_USE_FSDP", "true"},
                           {"FSDP_SHARDING_STRATEGY", "SHARD_GRAD_OP"},
                           {"FSDP_OFFLOAD_PARAMS", "true"}})
                         .zero;
  CHECK(grads.offload_optimizer == "cpu");
  CHECK(grads.offload_parameters.empty());
  std::map<std::string, std::string> deepspeed = {{"ACCELERATE_USE_DEEPSPEED", "true"},
                                                  {"ACCELERATE_DEEPSPEED_ZERO_STAGE", "2"},
                                                  {"ACCELERATE_DEEPSPEED_OFFLOAD_OPTIMIZER_DEVICE", "none"},
                                                  {"ACCELERATE_DEEPSPEED_OFFLOAD_PARAM_DEVICE", "cpu"}};
  CHECK(with(deepspeed).zero.offload_optimizer.empty());
  CHECK(with(deepspeed).zero.offload_parameters.empty());
  deepspeed["ACCELERATE_DEEPSPEED_ZERO_STAGE"] = "3";
  CHECK(with(deepspeed).zero.offload_parameters == "cpu");
  deepspeed["ACCELERATE_DEEPSPEED_OFFLOAD_OPTIMIZER_DEVICE"] = "nvme";
  CHECK_THROWS_WITH(with(deepspeed), ContainsSubstring("OFFLOAD_OPTIMIZER_DEVICE is 'nvme' without a path"));
  deepspeed["ACCELERATE_DEEPSPEED_OFFLOAD_OPTIMIZER_NVME_PATH"] = "/nvme";
  CHECK(with(deepspeed).zero.offload_optimizer == "/nvme");
}

TEST_CASE("axes of Accelerate's ParallelismConfig are axes of the mesh") {
  const auto axes = with({{"ACCELERATE_USE_PARALLELISM_CONFIG", "true"},
                          {"PARALLELISM_CONFIG_DP_REPLICATE_SIZE", "2"},
                          {"PARALLELISM_CONFIG_DP_SHARD_SIZE", "4"},
                          {"PARALLELISM_CONFIG_TP_SIZE", "2"},
                          {"PARALLELISM_CONFIG_CP_SIZE", "1"},
                          {"PARALLELISM_CONFIG_SP_SIZE", "3"}})
                        .parallel;
  CHECK(axes.replicate == 2);
  CHECK(axes.shard == 4);
  CHECK(axes.tensor == 2);
  CHECK(axes.context == 3);
  CHECK_THROWS_WITH(with({{"ACCELERATE_USE_PARALLELISM_CONFIG", "true"},
                          {"PARALLELISM_CONFIG_CP_SIZE", "2"},
                          {"PARALLELISM_CONFIG_SP_SIZE", "2"}}),
                    ContainsSubstring("PARALLELISM_CONFIG_CP_SIZE and PARALLELISM_CONFIG_SP_SIZE exclude each other"));
  CHECK(!with({{"PARALLELISM_CONFIG_TP_SIZE", "2"}}).parallel.tensor);
  CHECK_THROWS_WITH(with({{"ACCELERATE_USE_PARALLELISM_CONFIG", "true"}, {"PARALLELISM_CONFIG_TP_SIZE", "x"}}),
                    ContainsSubstring("PARALLELISM_CONFIG_TP_SIZE: expected a whole number from 1, got 'x'"));
}

TEST_CASE("the launcher's limit of the gradients' norm") {
  const auto clipping = [](const std::map<std::string, std::string>& variables) {
    return accelerator::launched({}, lookup(variables)).max_norm;
  };
  CHECK(!clipping({}));
  CHECK(clipping({{"HORTATOR_GRADIENT_CLIPPING", "0.5"}}) == 0.5);
  CHECK(clipping({{"HORTATOR_GRADIENT_CLIPPING", "1"}}) == 1);
  CHECK(!clipping({{"ACCELERATE_GRADIENT_CLIPPING", "1.0"}}));  // only DeepSpeed reads it
  CHECK(clipping({{"ACCELERATE_USE_DEEPSPEED", "true"}, {"ACCELERATE_GRADIENT_CLIPPING", "1.0"}}) == 1);
  CHECK(!clipping({{"HORTATOR_GRADIENT_CLIPPING", "0"}}));
  CHECK(clipping({{"HORTATOR_GRADIENT_CLIPPING", "auto"}}) == 1);
  for (const auto* bad : {"-1", "nan", "inf", "one", "1x"})
    CHECK_THROWS_WITH(clipping({{"HORTATOR_GRADIENT_CLIPPING", bad}}),
                      ContainsSubstring("HORTATOR_GRADIENT_CLIPPING: expected a number from 0, or auto"));
}

TEST_CASE("DeepSpeed clips at 1 unless its variable or its file sets another norm, and a file without one does not") {
  const auto clipping = [](std::map<std::string, std::string> variables) {
    variables["ACCELERATE_USE_DEEPSPEED"] = "true";
    return accelerator::launched({}, lookup(variables)).max_norm;
  };
  CHECK(clipping({}) == 1);
  CHECK(clipping({{"ACCELERATE_GRADIENT_CLIPPING", "auto"}}) == 1);
  CHECK(clipping({{"ACCELERATE_GRADIENT_CLIPPING", "0.5"}}) == 0.5);
  CHECK(!clipping({{"ACCELERATE_GRADIENT_CLIPPING", "0.0"}}));
  CHECK(!clipping({{"HORTATOR_GRADIENT_CLIPPING", "0"}}));
  CHECK_THROWS_WITH(clipping({{"ACCELERATE_GRADIENT_CLIPPING", "none"}}),
                    ContainsSubstring("ACCELERATE_GRADIENT_CLIPPING: expected a number from 0"));

  const auto of_file = [&](const char* entry, std::map<std::string, std::string> variables = {}) {
    std::ofstream("clipping.json") << R"({"zero_optimization": {"stage": 2})" << entry << "}";
    variables["ACCELERATE_DEEPSPEED_CONFIG_FILE"] = "clipping.json";
    return clipping(variables);
  };
  CHECK(!of_file(""));
  CHECK(!of_file(R"(, "gradient_clipping": 0)"));
  CHECK(of_file(R"(, "gradient_clipping": 0.25)") == 0.25);
  CHECK(of_file(R"(, "gradient_clipping": "auto")") == 1);
  const std::map<std::string, std::string> half = {{"ACCELERATE_GRADIENT_CLIPPING", "0.5"}};
  CHECK(of_file(R"(, "gradient_clipping": "auto")", half) == 0.5);
  CHECK(of_file(R"(, "gradient_clipping": 2.0)", half) == 2);
  CHECK(!of_file("", half));
  CHECK_THROWS_WITH(of_file(R"(, "gradient_clipping": -1)"), ContainsSubstring("gradient_clipping is -1"));
}

TEST_CASE("the launcher's layers to recompute") {
  const auto layers = [](const std::map<std::string, std::string>& variables) {
    return accelerator::launched({}, lookup(variables)).recomputed;
  };
  using Names = std::vector<std::string>;
  CHECK(!layers({}));
  CHECK(layers({{"HORTATOR_RECOMPUTE_LAYERS", "all"}})->names == Names{"*"});
  CHECK(layers({{"HORTATOR_RECOMPUTE_LAYERS", "Block, Linear"}})->classes == Names{"Block", "Linear"});
  CHECK(!layers({{"FSDP_ACTIVATION_CHECKPOINTING", "true"}}));
  std::map<std::string, std::string> fsdp = {{"ACCELERATE_USE_FSDP", "true"},
                                             {"FSDP_ACTIVATION_CHECKPOINTING", "true"}};
  CHECK(layers(fsdp)->names == Names{"*"});
  fsdp["FSDP_TRANSFORMER_CLS_TO_WRAP"] = "BertLayer";
  CHECK(layers(fsdp)->classes == Names{"BertLayer"});
}

TEST_CASE("the launcher's DeepSpeed file sets what neither the program nor a variable sets") {
  std::ofstream("launched.json") << R"({"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}},
      "bf16": {"enabled": true}, "gradient_accumulation_steps": 4, "gradient_clipping": 0.25,
      "fp16": {"initial_scale_power": 4}, "communication_data_type": "bf16", "steps_per_print": 3})";
  const std::map<std::string, std::string> by_launcher = {{"HORTATOR_DEEPSPEED_CONFIG", "launched.json"}};
  const auto options = with(by_launcher, {.gradient_accumulation_steps = 2});
  CHECK(options.zero.stage == 2);
  CHECK(options.zero.offload_optimizer == "cpu");
  CHECK(options.mixed_precision == Precision::bf16);
  CHECK(options.gradient_accumulation_steps == 4);
  CHECK(options.grad_scaler.init_scale == 16);
  CHECK(options.ddp.comm_hook == DDPCommunicationHookType::bf16);
  CHECK(accelerator::launched({}, lookup(by_launcher)).max_norm == 0.25);

  const auto own = with(by_launcher, {.mixed_precision = Precision::no, .zero = {.stage = 1}});
  CHECK(own.zero.stage == 1);
  CHECK(own.zero.offload_optimizer.empty());
  CHECK(own.mixed_precision == Precision::no);
  auto variables = by_launcher;
  variables["HORTATOR_ZERO_STAGE"] = "3";
  variables["HORTATOR_MIXED_PRECISION"] = "no";
  variables["HORTATOR_GRADIENT_ACCUMULATION_STEPS"] = "8";
  CHECK(with(variables).zero.stage == 3);
  CHECK(!with(variables).mixed_precision);
  CHECK(with(variables).gradient_accumulation_steps == 8);

  std::map<std::string, std::string> python = {{"ACCELERATE_DEEPSPEED_CONFIG_FILE", "launched.json"}};
  CHECK(!with(python).zero.stage);
  python["ACCELERATE_USE_DEEPSPEED"] = "true";
  CHECK(with(python).zero.stage == 2);
  std::ofstream("automatic.json") << R"({"zero_optimization": {"stage": "auto"}})";
  CHECK(with({{"HORTATOR_DEEPSPEED_CONFIG", "automatic.json"}}).zero.stage == 2);
  CHECK(with({{"HORTATOR_DEEPSPEED_CONFIG", "automatic.json"}, {"HORTATOR_ZERO_STAGE", "3"}}).zero.stage == 3);
  python["ACCELERATE_DEEPSPEED_CONFIG_FILE"] = "automatic.json";
  CHECK(with(python).zero.stage == 2);
  python["ACCELERATE_DEEPSPEED_ZERO_STAGE"] = "1";
  CHECK(with(python).zero.stage == 1);
  std::ofstream("no_stage.json") << R"({"zero_optimization": {"offload_optimizer": {"device": "cpu"}}})";
  const auto open = with({{"HORTATOR_DEEPSPEED_CONFIG", "no_stage.json"}}).zero;
  CHECK(open.stage == 0);
  CHECK(open.offload_optimizer.empty());
  CHECK_THROWS(with({{"HORTATOR_DEEPSPEED_CONFIG", "missing.json"}}));
}

TEST_CASE("what Accelerate's launcher asks for and does not exist is an error that names the variable") {
  CHECK_THROWS_WITH(with({{"ACCELERATE_USE_MEGATRON_LM", "true"}}), ContainsSubstring("ACCELERATE_USE_MEGATRON_LM"));
  CHECK_NOTHROW(with({{"ACCELERATE_USE_MEGATRON_LM", "false"}}));
  CHECK_THROWS_WITH(with({{"ACCELERATE_USE_SAGEMAKER", "true"}}), ContainsSubstring("ACCELERATE_USE_SAGEMAKER"));
  CHECK_THROWS_WITH(with({{"ACCELERATE_TORCH_DEVICE", "cuda:1"}}), ContainsSubstring("ACCELERATE_TORCH_DEVICE"));
  std::map<std::string, std::string> deepspeed = {{"ACCELERATE_DEEPSPEED_MOE_LAYER_CLS_NAMES", "Block"}};
  CHECK_NOTHROW(with(deepspeed));
  deepspeed["ACCELERATE_USE_DEEPSPEED"] = "true";
  CHECK_THROWS_WITH(with(deepspeed), ContainsSubstring("ACCELERATE_DEEPSPEED_MOE_LAYER_CLS_NAMES"));
  CHECK_NOTHROW(with({{"ACCELERATE_USE_DEEPSPEED", "true"}, {"ACCELERATE_FP8_BACKEND", "TE"}}));
  CHECK_THROWS_WITH(with({{"ACCELERATE_USE_DEEPSPEED", "true"}, {"ACCELERATE_FP8_BACKEND", "MSAMP"}}),
                    ContainsSubstring("ACCELERATE_FP8_BACKEND"));
  CHECK_THROWS_WITH(with({{"ACCELERATE_USE_FSDP", "true"}, {"FSDP_ACTIVATION_CHECKPOINTING_OFFLOAD", "true"}}),
                    ContainsSubstring("FSDP_ACTIVATION_CHECKPOINTING_OFFLOAD"));
}

TEST_CASE("the launcher's ZeRO stage, a number or an FSDP name, applies if the program sets none") {
  CHECK(!with({}).zero.stage);
  CHECK(with({{"HORTATOR_ZERO_STAGE", "2"}}).zero.stage == 2);
  CHECK(with({{"HORTATOR_ZERO_STAGE", "2"}}, {.zero = {.stage = 1}}).zero.stage == 1);
  CHECK(with({{"HORTATOR_ZERO_STAGE", "FULL_SHARD"}}).zero.stage == 3);
  CHECK(with({{"HORTATOR_ZERO_STAGE", "SHARD_GRAD_OP"}}).zero.stage == 2);
  CHECK(with({{"HORTATOR_ZERO_STAGE", "NO_SHARD"}}).zero.stage == 0);
  const auto hybrid = with({{"HORTATOR_ZERO_STAGE", "HYBRID_SHARD"}}).zero;
  CHECK(hybrid.stage == 3);
  CHECK(hybrid.shard_group == ZeroConfig::node);
  CHECK(with({{"HORTATOR_ZERO_STAGE", "HYBRID_SHARD_ZERO2"}}, {.zero = {.shard_group = 2}}).zero.shard_group == 2);
}

TEST_CASE("the modules that Accelerate's launcher ignores are left out of ZeRO, by names for a regular expression") {
  using Names = std::vector<std::string>;
  std::map<std::string, std::string> fsdp = {{"FSDP_IGNORED_MODULES", R"(head|layers\..*\.norm)"}};
  CHECK(with(fsdp).zero.ignore.empty());
  fsdp["ACCELERATE_USE_FSDP"] = "true";
  CHECK(with(fsdp).zero.ignore == Names{"head", "layers.*.norm"});
  CHECK(with(fsdp, {.zero = {.ignore = {"own"}}}).zero.ignore == Names{"own"});
  fsdp["HORTATOR_ZERO_IGNORE"] = "tail";
  CHECK(with(fsdp).zero.ignore == Names{"tail"});
  CHECK_THROWS_WITH(with({{"ACCELERATE_USE_FSDP", "true"}, {"FSDP_IGNORED_MODULES", "(head|tail)[0-9]+"}}),
                    ContainsSubstring("FSDP_IGNORED_MODULES: expected") && ContainsSubstring("zero.ignore"));
  for (const char* unset : {"", "none", "None"})
    CHECK(with({{"ACCELERATE_USE_FSDP", "true"}, {"FSDP_IGNORED_MODULES", unset}}).zero.ignore.empty());
}
