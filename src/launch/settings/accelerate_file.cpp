#include "launch/settings/accelerate_file.hpp"

#include <algorithm>
#include <array>
#include <iomanip>
#include <set>

#include "core/text/text.hpp"
#include "launch/settings/accelerate_sharding.hpp"

namespace hortator::launching {
namespace {

std::string_view section_of(std::string_view key) {
  const auto dot = key.find('.');
  return dot == std::string_view::npos ? "" : key.substr(0, dot);
}

// The name of a key as a flag: Accelerate adds the prefix where a key of a section is without it.
std::string name_of_key(std::string_view key) {
  const auto section = section_of(key);
  std::string name(section.empty() ? key : key.substr(section.size() + 1));
  for (const auto& [config, prefix] :
       {std::pair("fsdp_config", "fsdp_"), {"fp8_config", "fp8_"}, {"dynamo_config", "dynamo_"}}) {
    const bool needs_prefix =
        !name.starts_with(std::string_view(prefix).substr(0, std::string_view(prefix).size() - 1));
    if (section == config && needs_prefix) name = prefix + name;
  }
  return name;
}

// The section in which Accelerate writes a name.
std::string_view home_of(const AccelerateName& row) {
  static constexpr auto homes =
      std::to_array<std::pair<std::string_view, std::string_view>>({{"fsdp_", "fsdp_config"},
                                                                    {"megatron_lm_", "megatron_lm_config"},
                                                                    {"fp8_", "fp8_config"},
                                                                    {"parallelism_config_", "parallelism_config"},
                                                                    {"mpirun_", "mpirun_config"},
                                                                    {"dynamo_", "dynamo_config"},
                                                                    {"ipex_config", ""},
                                                                    {"ipex", "ipex_config"},
                                                                    {"use_xpu", "ipex_config"},
                                                                    {"zero", "deepspeed_config"},
                                                                    {"offload_", "deepspeed_config"},
                                                                    {"gradient_", "deepspeed_config"},
                                                                    {"deepspeed_", "deepspeed_config"}});
  for (const auto& [prefix, home] : homes) {
    if (row.name.starts_with(prefix)) return home;
  }
  return "";
}

std::string value_of(const ConfigEntry& entry) { return entry.values.empty() ? "" : entry.values.front(); }

class FileReader {
 public:
  FileReader(const std::vector<ConfigEntry>& entries, const std::string& file) : entries_(entries), file_(file) {
    for (const auto& entry : entries) {
      if (entry.key == "distributed_type") type_ = value_of(entry);
      if (entry.key == "num_machines") has_machines_ = value_of(entry) != "1" && !entry.values.empty();
      if (entry.key == "compute_environment" && !is_local(entry)) is_elsewhere_ = true;
      if (entry.key == "mixed_precision" && !entry.values.empty()) {
        has_precision_ = true;
        is_fp8_ = value_of(entry) == "fp8";
      }
    }
    if (text::parse_bool(type_) == false) type_ = "NO";
  }

  AccelerateFile read() && {
    for (const auto& entry : entries_) read_entry(entry);
    if (type_.empty() && !is_elsewhere_)
      remark({"distributed_type", 1}, Support::refused, "it is missing, and decides which sections have an effect");
    // Without a number, one process is started where nothing is distributed.
    if (type_ == "NO") result_.layer.try_emplace("ranks", SettingValue{{"1"}, origin_of_type_});
    if (type_ == "FSDP") take(plan_fsdp(sharding_, origin_of_type_));
    if (type_ == "DEEPSPEED") take(plan_deepspeed(sharding_, origin_of_type_));
    if (type_ == "MEGATRON_LM") take(plan_megatron(sharding_, origin_of_type_));
    return std::move(result_);
  }

 private:
  static bool is_local(const ConfigEntry& entry) { return entry.values.empty() || value_of(entry) == "LOCAL_MACHINE"; }

  void remark(const ConfigEntry& entry, Support support, std::string text) {
    result_.remarks.push_back({entry.key, entry.line, support, std::move(text)});
  }

  /// Whether the entry asks for nothing; a list, or a tuple as Accelerate writes it, if all its elements do.
  static bool is_unused(const ConfigEntry& entry, const AccelerateName& row) {
    return std::ranges::all_of(entry.values, [&](auto value) {
      std::erase_if(value, [](char c) { return std::string_view("()[] ").find(c) != std::string_view::npos; });
      const auto elements = text::split(value, ',');
      return std::ranges::all_of(elements, [&](const auto& one) { return is_unused_in_accelerate(row, one); });
    });
  }

  std::string origin(const ConfigEntry& entry) const { return text::concat(file_, ':', entry.line); }

  void read_entry(const ConfigEntry& entry) {
    const auto name = name_of_key(entry.key);
    const auto* row = accelerate_key(name);
    if (entry.values.empty()) return remark(entry, Support::noted, "not set");
    if (row == nullptr) return remark(entry, Support::refused, "not a known key of Accelerate");
    const auto home = home_of(*row);
    const bool is_at_home = section_of(entry.key) == home || (row->name == "dynamo_backend" && home == "dynamo_config");
    if (!is_at_home)
      return remark(
          entry, Support::refused,
          home.empty() ? std::string("it does not belong to a section") : text::concat("it belongs to ", home));
    if (const auto reason = why_unused(*row, home); !reason.empty()) return remark(entry, Support::noted, reason);
    if (row->name == "compute_environment") return read_environment(entry, *row);
    if (row->name == "distributed_type") return read_type(entry, *row);
    if (row->name == "fp16") return read_fp16(entry, *row);
    const bool is_planned = home == "fsdp_config" || home == "deepspeed_config" || home == "megatron_lm_config";
    if (is_planned) sharding_[name] = {value_of(entry), origin(entry)};
    if (row->support == Support::refused && is_unused(entry, *row)) return remark(entry, Support::noted, "not used");
    remark(entry, row->support, std::string(row->text));
    if (row->support == Support::honoured && !row->key.empty() && (!is_planned || row->key == "hostfile"))
      set(entry, *row);
  }

  // The reason for which Accelerate does not look at an entry; empty if it does.
  std::string why_unused(const AccelerateName& row, std::string_view home) const {
    const auto unless = [&](bool is_used, std::string_view needed) {
      return is_used ? std::string() : text::concat("not used: ", needed);
    };
    if (home == "deepspeed_config" && type_ != "DEEPSPEED") return unless(false, "distributed_type is not DEEPSPEED");
    if (row.name == "deepspeed_hostfile") return unless(has_machines_, "num_machines is 1");
    if (home == "fsdp_config") return unless(type_ == "FSDP", "distributed_type is not FSDP");
    if (home == "megatron_lm_config") return unless(type_ == "MEGATRON_LM", "distributed_type is not MEGATRON_LM");
    if (home == "fp8_config") return unless(is_fp8_, "mixed_precision is not fp8");
    if (home == "parallelism_config") return unless(type_ != "NO", "distributed_type is NO");
    if (row.name.starts_with("tpu_") || row.name.starts_with("command") || row.name == "downcast_bf16")
      return unless(false, "only on TPUs, which are refused");
    if (is_elsewhere_ && row.support == Support::refused) return unless(false, "compute_environment is refused");
    return "";
  }

  void read_environment(const ConfigEntry& entry, const AccelerateName& row) {
    remark(entry, is_local(entry) ? Support::honoured : Support::refused, std::string(row.text));
  }

  void read_type(const ConfigEntry& entry, const AccelerateName& row) {
    origin_of_type_ = origin(entry);
    const auto known = {"NO", "MULTI_CPU", "MULTI_GPU", "FSDP", "DEEPSPEED", "MEGATRON_LM"};
    const bool is_known = std::any_of(known.begin(), known.end(), [&](const auto* name) { return type_ == name; });
    if (is_elsewhere_) return remark(entry, Support::noted, "not used: compute_environment is refused");
    remark(entry, is_known ? Support::honoured : Support::refused, std::string(row.text));
  }

  // The name of mixed_precision in old files.
  void read_fp16(const ConfigEntry& entry, const AccelerateName& row) {
    const bool is_on = text::parse_bool(value_of(entry)) == true && !has_precision_;
    if (is_on) result_.layer["mixed_precision"] = {{"fp16"}, origin(entry)};
    remark(entry, is_on ? Support::honoured : Support::noted, std::string(row.text));
  }

  // Whether the entry carries a setting. Accelerate writes -1 processes when the launcher decides, one machine on every
  // laptop, which must not restrict a job of several nodes to one node, and 1 for the axes that are not used.
  static bool is_setting(const std::string& value, const AccelerateName& row) {
    return !(row.name == "num_processes" && value == "-1") && !(row.name == "num_machines" && value == "1") &&
           !(is_accelerate_axis(row) && value == "1");
  }

  void set(const ConfigEntry& entry, const AccelerateName& row) {
    auto& last = result_.remarks.back();
    const auto text = value_of(entry);
    if (!is_setting(text, row)) {
      last.support = Support::noted;
      last.text = "not given";
      return;
    }
    const auto value = value_from_accelerate(row, text);
    if (!value) {
      last.support = Support::refused;
      last.text = text::concat(text::quote(text), ": ", row.text);
    } else if (is_accelerate_axis(row) && result_.layer.contains(row.key)) {
      last.support = Support::refused;
      last.text = "context and sequence parallelism are one axis here, and exclude each other in Accelerate";
    } else {
      result_.layer[std::string(row.key)] = {{*value}, origin(entry)};
    }
  }

  void take(ShardingPlan plan) {
    for (auto& [key, value] : plan.layer) result_.layer[key] = std::move(value);
    for (auto& remark : result_.remarks) {
      const auto name = name_of_key(remark.key);
      if (const auto refused = plan.refused.find(name); refused != plan.refused.end()) {
        remark.support = Support::refused;
        remark.text = refused->second;
      } else if (const auto unused = plan.unused.find(name); unused != plan.unused.end()) {
        remark.support = Support::noted;
        remark.text = unused->second;
      }
    }
  }

  const std::vector<ConfigEntry>& entries_;
  const std::string& file_;
  std::string type_;
  std::string origin_of_type_;
  bool has_machines_ = false;
  bool is_elsewhere_ = false;
  bool has_precision_ = false;
  bool is_fp8_ = false;
  AccelerateValues sharding_;
  AccelerateFile result_;
};

}  // namespace

bool is_accelerate_file(const std::vector<ConfigEntry>& entries) {
  return std::any_of(entries.begin(), entries.end(), [](const ConfigEntry& entry) {
    return entry.key == "compute_environment" || entry.key == "distributed_type";
  });
}

AccelerateFile read_accelerate_file(const std::vector<ConfigEntry>& entries, const std::string& file) {
  return FileReader(entries, file).read();
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

}  // namespace hortator::launching
