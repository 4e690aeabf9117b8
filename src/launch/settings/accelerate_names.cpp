#include "launch/settings/accelerate_names.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <hortator/error.hpp>

#include "launch/settings/accelerate_sharding.hpp"
#include "launch/settings/keys.hpp"

namespace hortator::launching {
namespace {

// clang-format off
constexpr auto known_names = std::to_array<AccelerateName>({
#include "launch/settings/accelerate_names.inc"
});
// clang-format on

const AccelerateName* find(std::string_view name) {
  const auto known =
      std::find_if(known_names.begin(), known_names.end(), [&](const auto& row) { return row.name == name; });
  return known != known_names.end() ? &*known : nullptr;
}

// Degrees of parallelism and numbers of parts: 1 does nothing.
bool is_degree(std::string_view name) {
  return name.ends_with("_degree") || name.ends_with("_size") || name.ends_with("num_micro_batches") ||
         name.ends_with("interval");
}

}  // namespace

std::span<const AccelerateName> accelerate_names() { return known_names; }

bool is_accelerate_axis(const AccelerateName& row) {
  return row.name.starts_with("parallelism_config_") && row.name.ends_with("_size");
}

std::string_view name_of(Support support) {
  constexpr std::array<std::string_view, 3> names = {"honoured", "noted", "refused"};
  return names[static_cast<std::size_t>(support)];
}

std::optional<std::string> value_from_accelerate(const AccelerateName& row, std::string value) {
  if (row.key == "mixed_precision") {
    for (char& c : value) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (value == "false") value = "no";  // YAML's meaning of a plain no
  }
  if (row.name == "fp8_backend" || row.key == "fp8_format")
    for (char& c : value) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  if (row.name == "fp8_backend") value = value == "TE" ? "delayed" : value == "AO" ? "dynamic" : value;
  try {
    check_values(find_key(row.key, ""), {value}, "");
  } catch (const UsageError&) {
    return std::nullopt;
  }
  return value;
}

bool has_same_values(const AccelerateName& row) {
  static constexpr std::array<std::string_view, 4> planned = {"zero_stage", "offload_optimizer", "offload_parameters",
                                                              "recompute_layers"};
  return !row.name.starts_with("megatron_lm_") && row.support == Support::honoured && !row.key.empty() &&
         row.name != "fp16" && row.name != "fp8_backend" &&
         std::find(planned.begin(), planned.end(), row.key) == planned.end();
}

bool is_unused_in_accelerate(const AccelerateName& row, const std::string& value) {
  return is_unset_in_accelerate(value) || (value == "1" && is_degree(row.name));
}

const AccelerateName* accelerate_flag(std::string_view name) {
  const auto* row = find(name);
  return row != nullptr && row->source != NameSource::file ? row : nullptr;
}

const AccelerateName* accelerate_key(std::string_view name) {
  const auto* row = find(name);
  return row != nullptr && row->source != NameSource::flag ? row : nullptr;
}

bool is_accelerate_switch(std::string_view name) {
  static constexpr std::array<std::string_view, 14> switches = {"quiet",
                                                                "multi_gpu",
                                                                "enable_cpu_affinity",
                                                                "dynamo_use_fullgraph",
                                                                "dynamo_use_dynamic",
                                                                "dynamo_use_regional_compilation",
                                                                "use_deepspeed",
                                                                "use_fsdp",
                                                                "use_megatron_lm",
                                                                "use_parallelism_config",
                                                                "same_network",
                                                                "no_python",
                                                                "no_tpu_cluster",
                                                                "use_xpu"};
  return std::find(switches.begin(), switches.end(), name) != switches.end();
}

}  // namespace hortator::launching
