#pragma once

#include <optional>

#include "core/environment/environment.hpp"

namespace hortator::accelerator {

/// The sharding that Accelerate's launcher asks for by ACCELERATE_USE_FSDP or ACCELERATE_USE_DEEPSPEED, as text for
/// zero_config(), with the variable that names it; nothing if it asks for none, or a DeepSpeed file decides. Throws
/// UsageError for an invalid value.
std::optional<core::SetVariable> accelerate_sharding(const core::Variables& variables);

/// Where Accelerate's launcher asks to offload: "cpu" or a folder.
struct OffloadVariables {
  std::optional<core::SetVariable> optimizer = {};
  std::optional<core::SetVariable> parameters = {};
};

/// By FSDP_OFFLOAD_PARAMS, or ACCELERATE_DEEPSPEED_OFFLOAD_OPTIMIZER_DEVICE and ..._PARAM_DEVICE with their paths.
/// `stage` is the one that applies: parameters are offloaded at stage 3 only.
OffloadVariables accelerate_offload(const core::Variables& variables, int stage);

/// ACCELERATE_DEEPSPEED_ZERO_STAGE if DeepSpeed is in use; 2 where it is unset.
std::optional<core::SetVariable> accelerate_stage(const core::Variables& variables);

/// ACCELERATE_DEEPSPEED_CONFIG_FILE, if DeepSpeed is in use.
std::optional<core::SetVariable> accelerate_deepspeed_file(const core::Variables& variables);

/// ACCELERATE_GRADIENT_CLIPPING if DeepSpeed is in use; 1 where it is unset or "auto", as DeepSpeed has it under
/// Accelerate. Where a DeepSpeed file is in use, it counts only for the file's "auto".
std::optional<core::SetVariable> accelerate_clipping(const core::Variables& variables);

/// The layers of FSDP_ACTIVATION_CHECKPOINTING: "all", or the classes of FSDP_TRANSFORMER_CLS_TO_WRAP.
std::optional<core::SetVariable> accelerate_recomputation(const core::Variables& variables);

/// The modules of FSDP_IGNORED_MODULES, a regular expression, as names in which * is any text. Throws UsageError for
/// one with other operators than .* and |.
std::optional<core::SetVariable> accelerate_ignored(const core::Variables& variables);

/// A variable of SettingKey::accelerate; PARALLELISM_CONFIG_TP_SIZE and the like only with
/// ACCELERATE_USE_PARALLELISM_CONFIG.
std::optional<core::SetVariable> accelerate_variable(const core::Variables& variables, const char* name);

/// Throws UsageError if Accelerate's variables ask for what does not exist here, such as Megatron-LM or another
/// device.
void refuse_unsupported(const core::Variables& variables);

}  // namespace hortator::accelerator
