#include "launch/settings/accelerate_names.hpp"

#include <algorithm>
#include <array>
#include <hortator/error.hpp>
#include <iomanip>
#include <map>

#include "core/text/text.hpp"

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

std::string_view last_part(std::string_view key) {
  const auto dot = key.rfind('.');
  return dot == std::string_view::npos ? key : key.substr(dot + 1);
}

// Whether the value is what Accelerate writes for a feature that is not used.
bool is_unused(const ConfigEntry& entry) {
  return entry.values.empty() || is_unused_in_accelerate(entry.values.front());
}

// Translates a sharding strategy, by name or number, into a ZeRO stage where a stage means the same; nothing for an
// unknown strategy.
std::optional<std::string> stage_of(std::string_view strategy) {
  static const std::map<std::string_view, std::string> stages = {{"FULL_SHARD", "3"},
                                                                 {"1", "3"},
                                                                 {"SHARD_GRAD_OP", "2"},
                                                                 {"2", "2"},
                                                                 {"NO_SHARD", "0"},
                                                                 {"3", "0"},
                                                                 {"HYBRID_SHARD", "HYBRID_SHARD"},
                                                                 {"4", "HYBRID_SHARD"},
                                                                 {"HYBRID_SHARD_ZERO2", "HYBRID_SHARD_ZERO2"},
                                                                 {"5", "HYBRID_SHARD_ZERO2"}};
  const auto stage = stages.find(strategy);
  if (stage != stages.end()) return stage->second;
  if (const auto is_full = text::parse_bool(strategy)) return *is_full ? "3" : "2";
  return std::nullopt;
}

Support support_of_type(const std::string& type) {
  for (const auto* known : {"NO", "MULTI_CPU", "MULTI_GPU", "FSDP", "DEEPSPEED"}) {
    if (type == known) return Support::honoured;
  }
  return Support::refused;
}

AccelerateRemark remark_for(const ConfigEntry& entry, const AccelerateName& row) {
  AccelerateRemark remark{entry.key, entry.line, row.support, std::string(row.text)};
  if (row.name == "compute_environment") {
    remark.support = entry.values == std::vector<std::string>{"LOCAL_MACHINE"} ? Support::honoured : Support::refused;
  } else if (row.name == "distributed_type") {
    remark.support = entry.values.empty() ? Support::noted : support_of_type(entry.values.front());
  } else if (row.support == Support::refused && is_unused(entry)) {
    remark = {entry.key, entry.line, Support::noted, "not used"};
  }
  return remark;
}

bool is_axis(const AccelerateName& row) {
  return row.name.starts_with("parallelism_config_") && row.name.ends_with("_size");
}

// Whether the entry carries a setting. Accelerate writes -1 processes when the launcher decides, one machine on every
// laptop, which must not restrict a job of several nodes to one node, and 1 for the axes that are not used.
bool is_setting(const ConfigEntry& entry, const AccelerateName& row) {
  if (entry.values.empty()) return false;
  const auto& value = entry.values.front();
  const bool is_one = value == "1";
  return !(row.name == "num_processes" && value == "-1") && !(row.name == "num_machines" && is_one) &&
         !(is_axis(row) && is_one);
}

void read_entry(const ConfigEntry& entry, const std::string& file, AccelerateFile& settings) {
  const auto* row = find(last_part(entry.key));
  if (!row || row->source == NameSource::flag) {
    settings.remarks.push_back({entry.key, entry.line, Support::refused, "not a known key of Accelerate"});
    return;
  }
  auto remark = remark_for(entry, *row);
  const bool is_given = is_setting(entry, *row);
  if (!row->key.empty() && remark.support == Support::honoured) {
    const auto value = is_given ? value_from_accelerate(*row, entry.values.front()) : std::nullopt;
    const bool is_second = value && is_axis(*row) && settings.layer.contains(row->key);
    if (is_second) {
      remark.support = Support::refused;
      remark.text = "context and sequence parallelism are one axis here, and exclude each other in Accelerate";
    } else if (value) {
      settings.layer[std::string(row->key)] = {{*value}, text::concat(file, ':', entry.line)};
    } else {
      remark.support = is_given ? Support::refused : Support::noted;
      remark.text = is_given ? text::concat(text::quote(entry.values.front()), ": ", row->text) : "not given";
    }
  }
  settings.remarks.push_back(std::move(remark));
}

}  // namespace

std::span<const AccelerateName> accelerate_names() { return known_names; }

bool is_accelerate_file(const std::vector<ConfigEntry>& entries) {
  return std::any_of(entries.begin(), entries.end(), [](const ConfigEntry& entry) {
    return entry.key == "compute_environment" || entry.key == "distributed_type";
  });
}

AccelerateFile read_accelerate_file(const std::vector<ConfigEntry>& entries, const std::string& file) {
  AccelerateFile settings;
  for (const auto& entry : entries) read_entry(entry, file, settings);
  return settings;
}

void throw_if_refused(const AccelerateFile& settings, const std::string& file, std::vector<UsageError> errors) {
  for (const auto& remark : settings.remarks) {
    if (remark.support != Support::refused) continue;
    errors.emplace_back(
        Problem{.what = text::concat(file, ':', remark.line, ": ", remark.key, " of Accelerate is not supported"),
                .why = remark.text,
                .hint = "correct that line, or write a file of your own with `hortator config --default`"});
  }
  throw_all(errors, file);
}

std::string_view name_of(Support support) {
  constexpr std::array<std::string_view, 3> names = {"honoured", "noted", "refused"};
  return names[static_cast<std::size_t>(support)];
}

std::string remark_table(const std::vector<AccelerateRemark>& remarks) {
  std::size_t width = 0;
  for (const auto& remark : remarks) width = std::max(width, remark.key.size());
  std::ostringstream out;
  for (const auto& remark : remarks) {
    out << std::left << std::setw(static_cast<int>(width) + 2) << remark.key << std::setw(10) << name_of(remark.support)
        << remark.text << '\n';
  }
  return std::move(out).str();
}

std::optional<std::string> value_from_accelerate(const AccelerateName& row, const std::string& value) {
  if (row.key == "zero_stage" && row.name != "zero_stage") return stage_of(value);
  try {
    check_values(find_key(row.key, ""), {value}, "");
  } catch (const UsageError&) {
    return std::nullopt;
  }
  return value;
}

bool is_unused_in_accelerate(const std::string& value) {
  return value.empty() || value == "none" || value == "None" || value == "1" || text::parse_bool(value) == false;
}

const AccelerateName* accelerate_flag(std::string_view name) {
  const auto* row = find(name);
  return row != nullptr && row->source != NameSource::file ? row : nullptr;
}

bool is_accelerate_switch(std::string_view name) {
  static constexpr std::array<std::string_view, 12> switches = {"quiet",
                                                                "multi_gpu",
                                                                "enable_cpu_affinity",
                                                                "dynamo_use_fullgraph",
                                                                "dynamo_use_dynamic",
                                                                "dynamo_use_regional_compilation",
                                                                "use_deepspeed",
                                                                "use_fsdp",
                                                                "use_parallelism_config",
                                                                "same_network",
                                                                "no_python",
                                                                "no_tpu_cluster"};
  return std::find(switches.begin(), switches.end(), name) != switches.end();
}

}  // namespace hortator::launching
