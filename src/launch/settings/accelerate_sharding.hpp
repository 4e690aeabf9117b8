#pragma once

#include <map>
#include <string>
#include <string_view>

#include "launch/settings/settings.hpp"

/// What the settings of FSDP, DeepSpeed and Megatron-LM in Accelerate ask for. Pure: one value often depends on several
/// others.
namespace hortator::launching {

/// A value, and where it was given: "file:3" or "--fsdp_offload_params".
struct AccelerateValue {
  std::string text = "";
  std::string origin = "";
};

/// Values by their names: "fsdp_offload_params". A name without a value is left out.
using AccelerateValues = std::map<std::string, AccelerateValue, std::less<>>;

/// The settings of a sharded training, and what Accelerate does not use or Hortator does not have, with the reason.
struct ShardingPlan {
  Layer layer = {};
  std::map<std::string, std::string, std::less<>> unused = {};   ///< by name
  std::map<std::string, std::string, std::less<>> refused = {};  ///< by name
};

/// FSDP: version 1 by its strategy, version 2 by fsdp_reshard_after_forward. `selected_by` is the origin of what
/// selects FSDP, which shards fully by default; with an empty one there is no default.
ShardingPlan plan_fsdp(const AccelerateValues& given, const std::string& selected_by);

/// DeepSpeed, whose default is stage 2 and to clip gradients at 1. With an empty `selected_by` there is no default.
/// Where deepspeed_config_file is given, that file decides.
ShardingPlan plan_deepspeed(const AccelerateValues& given, const std::string& selected_by);

/// Megatron-LM's degrees of parallelism, and its distributed optimizer, which is stage 1. It clips gradients at 1 by
/// default; with an empty `selected_by` there is no default.
ShardingPlan plan_megatron(const AccelerateValues& given, const std::string& selected_by);

/// Whether the value means "not set" in Accelerate: empty, "none", "auto" or a spelling of false.
bool is_unset_in_accelerate(std::string_view value);

}  // namespace hortator::launching
