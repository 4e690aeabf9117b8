#include "accelerator/interop/accelerate/sharding_variables.hpp"

#include <array>
#include <hortator/error.hpp>
#include <string>
#include <string_view>

#include "core/text/pattern.hpp"
#include "core/text/text.hpp"

namespace hortator::accelerator {
namespace {

using core::SetVariable;

bool is_true(const core::Variables& variables, const char* name) {
  return core::yes_or_no(variables, name, "set it to true or false").value_or(false);
}

// FSDP's strategies have numbers from 1, which are not stages.
std::string strategy_name(const std::string& value) {
  constexpr std::array<std::string_view, 5> names = {"FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD",
                                                     "HYBRID_SHARD_ZERO2"};
  long long number = 0;
  if (!text::parse_integer(value, number)) {
    auto name = value;
    for (char& c : name) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    return name;
  }
  if (number >= 1 && number <= static_cast<long long>(names.size()))
    return std::string(names[static_cast<std::size_t>(number - 1)]);
  throw UsageError({.what = text::concat("FSDP_SHARDING_STRATEGY is ", text::quote(value)),
                    .hint = "set it to a number from 1 to 5, or to one of " + text::join(names)});
}

// FSDP 2 has a bool in the place of the strategy.
SetVariable fsdp_sharding(const core::Variables& variables) {
  const char* reshard = "FSDP_RESHARD_AFTER_FORWARD";
  const auto value = variables(reshard);
  const bool is_second = variables("FSDP_VERSION") == "2";
  if (const auto keeps = value ? text::parse_bool(*value) : std::nullopt; is_second && (keeps || !value))
    return {reshard, keeps.value_or(true) ? "FULL_SHARD" : "SHARD_GRAD_OP"};
  const auto strategy = core::first_set(variables, {"FSDP_SHARDING_STRATEGY"});
  if (!strategy) return {"FSDP_SHARDING_STRATEGY", "FULL_SHARD"};
  return {strategy->name, strategy_name(strategy->value)};
}

// Nothing for a value that means "not set" in Accelerate.
std::optional<SetVariable> set_in_accelerate(const core::Variables& variables, const char* name) {
  auto set = core::first_set(variables, {name});
  if (set && (set->value == "none" || set->value == "None" || set->value == "auto")) set.reset();
  return set;
}

std::optional<SetVariable> deepspeed_offload(const core::Variables& variables, const char* device, const char* path) {
  auto set = set_in_accelerate(variables, device);
  if (!set || set->value == "cpu") return set;
  auto folder = set_in_accelerate(variables, path);
  if (set->value == "nvme" && folder) return folder;
  throw UsageError({.what = text::concat(device, " is ", text::quote(set->value), folder ? "" : " without a path"),
                    .why = "what is offloaded has to go somewhere",
                    .hint = text::concat("set it to none, to cpu, or to nvme with ", path)});
}

// A variable that asks for what does not exist here.
struct UnsupportedVariable {
  const char* name;
  const char* only_with;     // the variable that has to be true; empty: none
  std::string_view asks_by;  // the value that asks for it; "true": any spelling; empty: any value
  const char* why;
  const char* hint;
};

constexpr auto unsupported = std::to_array<UnsupportedVariable>({
    {"ACCELERATE_USE_MEGATRON_LM", "", "true", "Megatron-LM is a library for Python",
     "set parallel.tensor, parallel.pipeline and zero.stage, or start the program by hortator launch with the same "
     "file"},
    {"ACCELERATE_USE_SAGEMAKER", "", "true", "SageMaker starts processes without MPI",
     "start the program with mpirun, srun or hortator launch"},
    {"ACCELERATE_TORCH_DEVICE", "", "", "each rank takes a device of its node",
     "unset it; HORTATOR_CPU=1 or --cpu asks for the CPU"},
    {"ACCELERATE_DEEPSPEED_MOE_LAYER_CLS_NAMES", "ACCELERATE_USE_DEEPSPEED", "",
     "layers are not gathered as a whole by their class",
     "set ddp.find_unused_parameters in the program where ranks use different experts"},
    {"ACCELERATE_FP8_BACKEND", "ACCELERATE_USE_DEEPSPEED", "MSAMP", "MS-AMP is a library for Python", "use bf16"},
    {"FSDP_ACTIVATION_CHECKPOINTING_OFFLOAD", "ACCELERATE_USE_FSDP", "true",
     "the program decides where saved tensors are",
     "create hortator::SavedTensors with on_host around the forward pass"},
});

bool asks(const core::Variables& variables, const UnsupportedVariable& row) {
  if (row.asks_by == "true") return is_true(variables, row.name);
  const auto set = set_in_accelerate(variables, row.name);
  return set && (row.asks_by.empty() || set->value == row.asks_by);
}

}  // namespace

std::optional<SetVariable> accelerate_deepspeed_file(const core::Variables& variables) {
  if (!is_true(variables, "ACCELERATE_USE_DEEPSPEED")) return std::nullopt;
  return set_in_accelerate(variables, "ACCELERATE_DEEPSPEED_CONFIG_FILE");
}

std::optional<SetVariable> accelerate_stage(const core::Variables& variables) {
  if (!is_true(variables, "ACCELERATE_USE_DEEPSPEED")) return std::nullopt;
  constexpr auto name = "ACCELERATE_DEEPSPEED_ZERO_STAGE";
  return SetVariable{name, variables(name).value_or("2")};
}

std::optional<SetVariable> accelerate_clipping(const core::Variables& variables) {
  if (!is_true(variables, "ACCELERATE_USE_DEEPSPEED")) return std::nullopt;
  constexpr auto name = "ACCELERATE_GRADIENT_CLIPPING";
  const auto value = variables(name).value_or("auto");
  return SetVariable{name, value == "auto" ? "1" : value};
}

OffloadVariables accelerate_offload(const core::Variables& variables, int stage) {
  if (is_true(variables, "ACCELERATE_USE_FSDP") && is_true(variables, "FSDP_OFFLOAD_PARAMS")) {
    const SetVariable cpu{"FSDP_OFFLOAD_PARAMS", "cpu"};
    return {.optimizer = cpu, .parameters = stage == 3 ? std::optional(cpu) : std::nullopt};
  }
  if (!is_true(variables, "ACCELERATE_USE_DEEPSPEED")) return {};
  OffloadVariables offload;
  offload.optimizer = deepspeed_offload(variables, "ACCELERATE_DEEPSPEED_OFFLOAD_OPTIMIZER_DEVICE",
                                        "ACCELERATE_DEEPSPEED_OFFLOAD_OPTIMIZER_NVME_PATH");
  if (stage == 3)
    offload.parameters = deepspeed_offload(variables, "ACCELERATE_DEEPSPEED_OFFLOAD_PARAM_DEVICE",
                                           "ACCELERATE_DEEPSPEED_OFFLOAD_PARAM_NVME_PATH");
  return offload;
}

std::optional<SetVariable> accelerate_recomputation(const core::Variables& variables) {
  if (!is_true(variables, "ACCELERATE_USE_FSDP") || !is_true(variables, "FSDP_ACTIVATION_CHECKPOINTING"))
    return std::nullopt;
  const auto classes = set_in_accelerate(variables, "FSDP_TRANSFORMER_CLS_TO_WRAP");
  return SetVariable{"FSDP_ACTIVATION_CHECKPOINTING", classes ? classes->value : "all"};
}

std::optional<SetVariable> accelerate_ignored(const core::Variables& variables) {
  if (!is_true(variables, "ACCELERATE_USE_FSDP")) return std::nullopt;
  auto set = set_in_accelerate(variables, "FSDP_IGNORED_MODULES");
  if (!set) return set;
  const auto names = text::names_of_expression(set->value);
  if (!names) {
    throw UsageError({.what = text::concat("FSDP_IGNORED_MODULES: expected names of modules with .* and |, got ",
                                           text::quote(set->value)),
                      .hint = "name the modules in zero.ignore, or in HORTATOR_ZERO_IGNORE with * for any text"});
  }
  set->value = *names;
  return set;
}

std::optional<SetVariable> accelerate_variable(const core::Variables& variables, const char* name) {
  if (!std::string_view(name).starts_with("PARALLELISM_CONFIG_")) return core::first_set(variables, {name});
  if (!is_true(variables, "ACCELERATE_USE_PARALLELISM_CONFIG")) return std::nullopt;
  return set_in_accelerate(variables, name);
}

void refuse_unsupported(const core::Variables& variables) {
  for (const auto& row : unsupported) {
    if (row.only_with[0] != '\0' && !is_true(variables, row.only_with)) continue;
    if (!asks(variables, row)) continue;
    throw UsageError({.what = text::concat(row.name, " of Accelerate's launcher is not supported"),
                      .why = row.why,
                      .hint = row.hint});
  }
}

std::optional<SetVariable> accelerate_sharding(const core::Variables& variables) {
  if (is_true(variables, "ACCELERATE_USE_FSDP")) return fsdp_sharding(variables);
  return accelerate_deepspeed_file(variables) ? std::nullopt : accelerate_stage(variables);
}

}  // namespace hortator::accelerator
