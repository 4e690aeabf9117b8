#include "tools/command_line.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <iostream>
#include <map>

#include "core/text/text.hpp"
#include "launch/job/resources.hpp"
#include "launch/job/walltime.hpp"
#include "launch/settings/accelerate_names.hpp"
#include "launch/settings/accelerate_sharding.hpp"
#include "launch/settings/synonyms.hpp"
#include "tools/given_settings.hpp"
#include "tools/typed_values.hpp"

namespace hortator::tools {
namespace {

namespace po = boost::program_options;
using launching::Dialect;
using launching::Meaning;
using launching::Support;
using launching::Synonym;
using launching::Takes;

std::string replaced(std::string text, char from, char to) {
  std::replace(text.begin(), text.end(), from, to);
  return text;
}

const launching::Key& key_named(std::string_view name) { return launching::find_key(name, ""); }

// The setting of that flag; null if there is none.
const launching::Key* key_of_flag(const std::string& flag) {
  const auto keys = launching::keys();
  const auto key = std::find_if(keys.begin(), keys.end(), [&](const auto& k) { return launching::flag_of(k) == flag; });
  return key == keys.end() ? nullptr : &*key;
}

bool has_many_values(const launching::Key& key) {
  return key.kind == launching::KeyKind::list || key.kind == launching::KeyKind::variables;
}

class CommandLine {
 public:
  CommandLine(const Arguments& arguments, const Options& options) : arguments_(arguments), options_(options) {}

  Arguments plain() {
    while (at_ < arguments_.size()) {
      const auto argument = arguments_[at_++];
      const bool is_option = argument.size() > 1 && argument.starts_with('-') && argument != "--";
      if (is_option) {
        take_option(argument);
      } else if (argument == "--" || options_.ends_at_text) {
        take_rest(argument);
      } else {
        plain_.push_back(argument);
      }
    }
    plan_sharding();
    return std::move(plain_);
  }

 private:
  using Value = std::optional<std::string>;

  const po::option_description* find(const std::string& name) const {
    return options_.named.find_nothrow(name, /*approx=*/false);
  }
  bool has_flag(const launching::Key& key) const { return find(launching::flag_of(key)) != nullptr; }

  // Detected only if it matters: it may need the settings files.
  Dialect dialect() {
    if (!dialect_) dialect_ = options_.dialect != nullptr ? options_.dialect(arguments_) : Dialect::slurm;
    return *dialect_;
  }

  void take_rest(const std::string& first) {
    plan_sharding();
    plain_.emplace_back("--");
    if (first != "--") plain_.push_back(first);
    for (; at_ < arguments_.size(); ++at_) plain_.push_back(arguments_[at_]);
  }

  void take_option(const std::string& argument) {
    const bool is_long = argument.starts_with("--");
    const auto end = is_long ? argument.find('=') : std::min<std::size_t>(2, argument.size());
    const auto typed = argument.substr(0, end);
    const auto value = end < argument.size() ? Value(argument.substr(end + (is_long ? 1 : 0))) : std::nullopt;
    if (!is_long) return take_short(argument, typed, value);
    const auto dashed = replaced(typed.substr(2), '_', '-');
    const auto spelling = "--" + dashed;
    const auto* synonym = options_.has_settings ? launching::find_synonym(spelling, Dialect::any) : nullptr;
    const bool is_of_accelerate = launching::accelerate_flag(replaced(dashed, '-', '_')) != nullptr;
    if (synonym != nullptr && !options_.own_flags.contains(dashed) && (is_known(*synonym) || !is_of_accelerate))
      return take_synonym(*synonym, typed, value);
    if (const auto* option = find(dashed)) {
      take_known(*option, dashed, typed, value);
      if (dashed == "zero-stage") note_stage(typed);
      return;
    }
    if (!options_.has_settings) {
      plain_.push_back(argument);  // unknown
    } else {
      take_foreign(argument, typed, dashed, value);
    }
  }

  void take_short(const std::string& argument, const std::string& typed, const Value& value) {
    const auto* synonym = options_.has_settings ? launching::find_synonym(argument, Dialect::any) : nullptr;
    if (synonym != nullptr) synonym = at_hand(argument);
    if (synonym == nullptr) return take_own(find(typed), typed, value);
    auto attached = argument.substr(synonym->spelling.size());
    if (attached.starts_with('=')) attached.erase(0, 1);
    take_synonym(*synonym, std::string(synonym->spelling), attached.empty() ? std::nullopt : Value(attached));
  }

  // Whether the verb has the setting.
  bool is_known(const Synonym& synonym) const {
    return synonym.meaning != Meaning::setting || has_flag(key_named(synonym.text));
  }

  // A launch outside of PBS knows no line for qsub: there, -u and -m have other meanings.
  bool is_out_of_place(const Synonym& synonym) {
    const bool is_line = synonym.meaning == Meaning::pbs_line || synonym.meaning == Meaning::mail_points;
    return options_.is_launch && is_line && synonym.dialect == Dialect::pbs && dialect() != Dialect::pbs;
  }

  // In a job of PBS, a launch knows mpirun's meaning as well: `-N 2` does not name a job there.
  const Synonym* at_hand(const std::string& argument) {
    const auto* first = launching::find_synonym(argument, dialect());
    if (is_out_of_place(*first)) return nullptr;
    if (!options_.is_launch || dialect() != Dialect::pbs || (first->dialect == Dialect::pbs && is_known(*first)))
      return first;
    const auto* other = launching::find_synonym(argument, Dialect::mpi);
    const bool is_better = other->dialect != Dialect::slurm && other->meaning != Meaning::noted && is_known(*other);
    return is_better ? other : first;
  }

  void take_known(const po::option_description& option, const std::string& dashed, const std::string& typed,
                  const Value& value) {
    const auto* key = options_.has_settings && !options_.own_flags.contains(dashed) ? key_of_flag(dashed) : nullptr;
    if (key == nullptr || key->kind == launching::KeyKind::onoff) return take_own(&option, "--" + dashed, value);
    const auto given = next_value(typed, value);
    launching::check_values(*key, {given}, typed + ": ");
    put(*key, given, typed);
  }

  void put(const launching::Key& key, const std::string& value, const std::string& typed) {
    const auto flag = launching::flag_of(key);
    const auto argument = text::concat("--", flag, '=', value);
    const auto earlier =
        has_many_values(key) ? std::nullopt : given_.add(flag, {replaced(typed, '_', '-'), value, plain_.size()});
    if (earlier) {
      plain_[*earlier] = argument;
    } else {
      plain_.push_back(argument);
    }
  }

  void put_switch(const std::string& argument) {
    if (std::find(plain_.begin(), plain_.end(), argument) == plain_.end()) plain_.push_back(argument);
  }

  // The value is attached, so that the parser does not look at it.
  void take_own(const po::option_description* option, const std::string& name, Value value) {
    const bool has_value = option != nullptr && option->semantic()->max_tokens() > 0;
    const auto* separator = name.starts_with("--") ? "=" : "";
    if (!value && !has_value) return put_switch(name);
    if (value || at_ == arguments_.size()) {
      plain_.push_back(value ? name + separator + *value : name);
      return;
    }
    value = arguments_[at_++];
    if (value->empty()) {  // cannot be attached
      plain_.insert(plain_.end(), {name, ""});
    } else {
      plain_.push_back(name + separator + *value);
    }
  }

  std::string next_value(const std::string& typed, Value value) {
    if (value) return *std::move(value);
    if (at_ < arguments_.size()) return arguments_[at_++];
    throw UsageError({.what = text::concat(typed, ": the value is missing")});
  }

  std::string value_of(const Synonym& synonym, const std::string& typed, const Value& value) {
    switch (synonym.takes) {
      case Takes::value:
        return next_value(typed, value);
      case Takes::two_values: {
        const auto first = next_value(typed, value);
        return first + " " + next_value(typed, std::nullopt);
      }
      case Takes::nothing:
        if (value) throw UsageError({.what = text::concat(typed, " has no value, got ", text::quote(*value))});
        return "";
      case Takes::optional:
        return value.value_or("");
    }
    return "";
  }

  void take_synonym(const Synonym& synonym, const std::string& typed, const Value& given) {
    if (synonym.meaning == Meaning::refused) {
      throw UsageError({.what = typed + " is not supported", .hint = std::string(synonym.text)});
    }
    if (synonym.meaning == Meaning::resources && options_.is_launch && !names_resource(given)) {
      return set("prefix_output", "true", typed);
    }
    check_scheduler(synonym, typed);
    const auto value = value_of(synonym, typed, given);
    switch (synonym.meaning) {
      case Meaning::setting:
        return take_setting(synonym, typed, value);
      case Meaning::directive:
        return take_directive(synonym, typed, value);
      case Meaning::pbs_line:
        return options_.is_launch ? at_launch(synonym, typed, "")
                                  : add("directives", std::string(synonym.text) + value);
      case Meaning::option:
        return take_launcher_option(synonym, typed, value);
      case Meaning::resources:
        return take_resources(typed, value);
      case Meaning::gres:
        return take_gres(typed, value);
      case Meaning::variables:
        return take_variables(synonym, typed, value);
      case Meaning::mail_points:
        return set("mail_type", mail_types_of(value, typed), typed);
      case Meaning::attributes:
        if (value.starts_with("depend=")) return set("dependency", value.substr(7), typed);
        return options_.is_launch ? at_launch(synonym, typed, "") : add("directives", "-W " + value);
      case Meaning::noted:
      case Meaning::refused:
        return note(typed, std::string(synonym.text));
    }
  }

  void take_variables(const Synonym& synonym, const std::string& typed, std::string value) {
    if (synonym.takes == Takes::two_values) {
      value[value.find(' ')] = '=';
      return set("environment", value, typed);
    }
    for (const auto& one : assignments_of(value, typed, dialect() == Dialect::pbs)) set("environment", one, typed);
  }

  bool names_resource(const Value& given) const {
    const auto next = given ? *given : at_ < arguments_.size() ? arguments_[at_] : "";
    return !next.starts_with('-') && next.find('=') != std::string::npos;
  }

  // A spelling of the other scheduler would be lost in this job.
  void check_scheduler(const Synonym& synonym, const std::string& typed) {
    const bool is_scheduler = synonym.dialect == Dialect::slurm || synonym.dialect == Dialect::pbs;
    if (!is_scheduler || options_.is_launch || synonym.meaning == Meaning::noted || synonym.dialect == dialect())
      return;
    throw UsageError({.what = text::concat(typed, " is an option of ", launching::name_of(synonym.dialect),
                                           ", and this is a ", launching::name_of(dialect()), " job"),
                      .hint = "--scheduler slurm or --scheduler pbs chooses the scheduler"});
  }

  void take_setting(const Synonym& synonym, const std::string& typed, const std::string& value) {
    const auto& key = key_named(synonym.text);
    if (!has_flag(key)) return at_launch(synonym, typed, value);
    if (key.kind == launching::KeyKind::onoff) {
      const auto is_on = value.empty() ? std::optional(true) : text::parse_bool(value);
      if (is_on) return *is_on ? put_switch("--" + launching::flag_of(key)) : void();
      return add("directives", text::concat(synonym.spelling, '=', value));  // Slurm's --exclusive=user
    }
    set(synonym.text, synonym.takes == Takes::nothing ? std::string(synonym.fixed) : value, typed);
  }

  // What a launch does with a spelling that asks for something of a job.
  void at_launch(const Synonym& synonym, const std::string& typed, const std::string& value) {
    if (!options_.is_launch) {
      throw UsageError({.what = typed + " is only for `hortator launch`",
                        .hint = "a job's nodes and GPUs come from the scheduler: use --nodes and --gpus-per-node"});
    }
    const auto& option = synonym.at_launch;
    if (option == "refused") {
      throw UsageError({.what = typed + " needs a job", .hint = "use `hortator job`"});
    }
    if (option.starts_with("setting ")) return set(option.substr(8), value, typed);
    if (option.empty()) return note(typed, "`hortator job` asks the scheduler for it");
    if (dialect() != Dialect::slurm) return note(typed, "only srun has it, and mpirun starts the ranks here");
    add("launcher_options", with_value(option, value));
  }

  void take_directive(const Synonym& synonym, const std::string& typed, const std::string& value) {
    if (!options_.is_launch) return add("directives", with_value(synonym.text, value));
    if (!synonym.at_launch.empty()) return at_launch(synonym, typed, value);
    if (dialect() != Dialect::slurm) return note(typed, "only srun has it, and mpirun starts the ranks here");
    add("launcher_options", with_value(synonym.text, value));
  }

  void take_launcher_option(const Synonym& synonym, const std::string& typed, const std::string& value) {
    if (options_.is_launch && synonym.dialect == Dialect::slurm && dialect() != Dialect::slurm)
      return note(typed, "only srun has it, and mpirun starts the ranks here");
    add("launcher_options", with_value(synonym.text, value, synonym.dialect == Dialect::slurm ? "=" : " "));
  }

  void take_resources(const std::string& typed, const std::string& value) {
    for (const auto& resource : launching::parse_pbs_resources(value)) {
      if (resource.key.empty()) {
        add("directives", resource.value);
      } else if (resource.key == "chunk_resources") {
        add(resource.key, resource.value);
      } else if (options_.is_launch && !has_flag(key_named(resource.key))) {
        note(text::concat(typed, ' ', value), "`hortator job` asks the scheduler for it");
      } else {
        set(resource.key, resource.value, typed + " " + value);
      }
    }
  }

  void take_gres(const std::string& typed, const std::string& value) {
    const bool is_gpu = value == "gpu" || value.starts_with("gpu:");
    if (is_gpu && value.find(',') == std::string::npos)
      return set("gpus_per_node", value == "gpu" ? "1" : value.substr(4), typed);
    if (!options_.is_launch) return add("directives", "--gres=" + value);
    if (dialect() != Dialect::slurm) return note(typed, "only srun has it, and mpirun starts the ranks here");
    add("launcher_options", "--gres=" + value);
  }

  // Sets the setting, after a check that names what the user typed.
  void set(std::string_view name, std::string value, const std::string& typed) {
    const auto& key = key_named(name);
    const auto flag = launching::flag_of(key);
    if (!has_flag(key)) return note(typed, "`hortator job` asks the scheduler for it");
    if (key.kind == launching::KeyKind::onoff) return put_switch("--" + flag);
    if (key.kind == launching::KeyKind::time)
      value = dialect() == Dialect::pbs ? launching::time_of_pbs(value) : launching::time_of_slurm(value);
    if (!options_.own_flags.contains(flag)) launching::check_values(key, {value}, typed + ": ");
    refuse_number_as_name(key, value, typed);
    put(key, value, typed);
  }

  // Users of Slurm and mpirun mean a number of nodes.
  void refuse_number_as_name(const launching::Key& key, const std::string& value, const std::string& typed) const {
    if (key.name != "job_name" || typed != "-N" || value.find_first_not_of("0123456789") != std::string::npos) return;
    throw UsageError({.what = text::concat("-N: with PBS it is the name of the job, got ", text::quote(value)),
                      .hint = text::concat("use --nodes ", value, ", or --job-name ", value, " if that is the name")});
  }

  void add(std::string_view name, const std::string& value) {
    if (!has_flag(key_named(name))) return note(value, "`hortator job` asks the scheduler for it");
    plain_.push_back("--" + launching::flag_of(key_named(name)) + "=" + value);
  }

  void note(const std::string& typed, const std::string& why) {
    if (noted_.insert(replaced(typed, '_', '-')).second)
      std::cerr << "hortator: " << typed << " has no effect: " << why << "\n";
  }

  // An option of Accelerate, or a setting that this verb does not have.
  void take_foreign(const std::string& argument, const std::string& typed, const std::string& dashed,
                    const Value& value) {
    const auto* row = launching::accelerate_flag(replaced(dashed, '-', '_'));
    if (row == nullptr) return take_setting_of_other_verb(argument, typed, dashed, value);
    const bool is_switch = launching::is_accelerate_switch(row->name);
    const bool is_next_unused =
        !value && !is_switch && at_ < arguments_.size() && launching::is_unused_in_accelerate(*row, arguments_[at_]);
    const bool is_unused = is_next_unused || (value && launching::is_unused_in_accelerate(*row, *value));
    if (row->support == Support::refused && !is_unused) {
      throw UsageError({.what = typed + " of Accelerate is not supported", .why = std::string(row->text)});
    }
    if (row->name == "use_fsdp" || row->name == "use_deepspeed") return select_sharding(std::string(row->name), typed);
    if (is_planned(row->name)) {
      sharding_[std::string(row->name)] = {next_value(typed, value), typed};
      const bool is_read = row->name == "fsdp_version" || row->name == "fsdp_transformer_layer_cls_to_wrap";
      if (row->support == Support::noted && !is_read) note(typed, std::string(row->text));
      return;
    }
    if (row->support == Support::honoured) return take_accelerate(*row, argument, typed, value);
    if (!value && !is_switch && at_ < arguments_.size()) ++at_;
    note(typed, std::string(row->text));
  }

  // Flags of FSDP and DeepSpeed depend on each other, and are translated when all are known.
  static bool is_planned(std::string_view name) {
    return (name.starts_with("fsdp_") && name != "fsdp_activation_checkpointing_offload") ||
           name.starts_with("offload_") || name == "deepspeed_config_file";
  }

  // A stage that DeepSpeed has, for what depends on it.
  void note_stage(const std::string& typed) {
    for (const auto& flag : plain_) {
      if (flag.starts_with("--zero-stage=") && flag.size() == 14 && flag.back() >= '0' && flag.back() <= '3')
        sharding_["zero_stage"] = {flag.substr(13), typed};
    }
  }

  void select_sharding(const std::string& name, const std::string& typed) {
    auto& other = name == "use_fsdp" ? deepspeed_ : fsdp_;
    (name == "use_fsdp" ? fsdp_ : deepspeed_) = typed;
    if (!other.empty())
      throw UsageError({.what = text::concat(other, " and ", typed, " exclude each other"), .hint = "leave one out"});
  }

  void plan_sharding() {
    const auto is_any = [&](std::initializer_list<std::string_view> prefixes) {
      return std::any_of(sharding_.begin(), sharding_.end(), [&](const auto& one) {
        return std::any_of(prefixes.begin(), prefixes.end(), [&](auto text) { return one.first.starts_with(text); });
      });
    };
    const bool has_stage =
        std::any_of(plain_.begin(), plain_.end(), [](const auto& flag) { return flag.starts_with("--zero-stage="); });
    if (!fsdp_.empty() || is_any({"fsdp_"})) add_plan(launching::plan_fsdp(sharding_, fsdp_), has_stage);
    if (!deepspeed_.empty() || is_any({"offload_", "deepspeed_"}))
      add_plan(launching::plan_deepspeed(sharding_, deepspeed_), has_stage);
    sharding_.clear();
    fsdp_.clear();
    deepspeed_.clear();
  }

  void add_plan(const launching::ShardingPlan& plan, bool has_stage) {
    for (const auto& [name, reason] : plan.refused)
      throw UsageError({.what = text::concat("--", name, " of Accelerate is not supported"), .why = reason});
    for (const auto& [name, reason] : plan.unused) note("--" + name, reason);
    for (const auto& [key, value] : plan.layer) {
      if (key != "zero_stage" || !has_stage) set(key, value.values.front(), value.origin);
    }
  }

  void take_accelerate(const launching::AccelerateName& row, const std::string& argument, const std::string& typed,
                       Value value) {
    if (row.key.empty()) return plain_.push_back(argument);
    const auto& key = key_named(row.key);
    if (key.kind == launching::KeyKind::onoff) return put_switch("--" + launching::flag_of(key));
    value = next_value(typed, value);
    if (!has_flag(key)) {
      return *value == "all" ? note(typed, std::string(row.text)) : at_launch({.spelling = row.name}, typed, *value);
    }
    const auto translated = launching::value_from_accelerate(row, *value);
    if (!translated && key.kind != launching::KeyKind::choice) launching::check_values(key, {*value}, typed + ": ");
    if (!translated) {
      throw UsageError(
          {.what = text::concat(typed, ": ", text::quote(*value), " is not supported"), .why = std::string(row.text)});
    }
    if (launching::is_accelerate_axis(row)) {
      if (*translated == "1") return;  // it sets nothing
      refuse_second_axis(row, typed);
    }
    put(key, *translated, typed);
  }

  // Two flags of Accelerate that set one axis exclude each other there.
  void refuse_second_axis(const launching::AccelerateName& row, const std::string& typed) {
    const auto [first, is_first] = axes_.emplace(row.key, typed);
    if (is_first || first->second == typed) return;
    throw UsageError({.what = text::concat(first->second, " and ", typed, " exclude each other"),
                      .why = "context and sequence parallelism are one axis here, and Accelerate takes one of them",
                      .hint = text::concat("pass one of them, or --", launching::flag_of(key_named(row.key)))});
  }

  void take_setting_of_other_verb(const std::string& argument, const std::string& typed, const std::string& dashed,
                                  const Value& value) {
    const auto* key = key_of_flag(dashed);
    if (key == nullptr || options_.own_flags.contains(dashed)) return plain_.push_back(argument);  // unknown
    const auto given = key->kind == launching::KeyKind::onoff ? "" : next_value(typed, value);
    at_launch({.spelling = typed}, typed, given);
  }

  const Arguments& arguments_;
  const Options& options_;
  std::optional<Dialect> dialect_;
  std::set<std::string> noted_;
  GivenSettings given_;
  launching::AccelerateValues sharding_;
  std::string fsdp_;                              ///< as typed, if it is selected
  std::string deepspeed_;                         ///< as typed, if it is selected
  std::map<std::string_view, std::string> axes_;  ///< of flags of Accelerate: the first flag that set a key
  std::size_t at_ = 0;
  Arguments plain_;
};

}  // namespace

Arguments plain_arguments(const Arguments& arguments, const Options& options) {
  return CommandLine(arguments, options).plain();
}

}  // namespace hortator::tools
