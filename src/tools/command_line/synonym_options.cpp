#include "tools/command_line/synonym_options.hpp"

#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "launch/settings/resources.hpp"
#include "tools/command_line/typed_values.hpp"

namespace hortator::tools {

using launching::Dialect;
using launching::Meaning;
using launching::Synonym;
using launching::Takes;

bool SynonymOptions::is_known(const Synonym& synonym) const {
  return synonym.meaning != Meaning::setting || arguments_.has_flag(launching::find_key(synonym.text, ""));
}

// A launch outside of PBS knows no line for qsub: there, -u and -m have other meanings.
bool SynonymOptions::is_out_of_place(const Synonym& synonym) {
  const bool is_line = synonym.meaning == Meaning::pbs_line || synonym.meaning == Meaning::mail_points;
  return is_launch() && is_line && synonym.dialect == Dialect::pbs && arguments_.dialect() != Dialect::pbs;
}

const Synonym* SynonymOptions::find_short(const std::string& argument) {
  if (launching::find_synonym(argument, Dialect::any) == nullptr) return nullptr;
  const auto* first = launching::find_synonym(argument, arguments_.dialect());
  if (is_out_of_place(*first)) return nullptr;
  // In a job of PBS, a launch knows mpirun's meaning as well: `-N 2` does not name a job there.
  if (!is_launch() || arguments_.dialect() != Dialect::pbs || (first->dialect == Dialect::pbs && is_known(*first)))
    return first;
  const auto* other = launching::find_synonym(argument, Dialect::mpi);
  const bool is_better = other->dialect != Dialect::slurm && other->meaning != Meaning::noted && is_known(*other);
  return is_better ? other : first;
}

void SynonymOptions::take(const Synonym& synonym, const TypedOption& option) {
  const auto& typed = option.spelling;
  if (synonym.meaning == Meaning::refused) {
    throw UsageError({.what = typed + " is not supported", .hint = std::string(synonym.text)});
  }
  // srun's -l, which has no value and labels lines.
  if (synonym.meaning == Meaning::resources && is_launch() && !names_resource(option))
    return arguments_.set("prefix_output", "true", typed);
  check_scheduler(synonym, typed);
  take_value(synonym, typed, value_of(synonym, option));
}

bool SynonymOptions::names_resource(const TypedOption& option) const {
  const auto* next = option.value ? &*option.value : reader_.peek();
  return next != nullptr && !next->starts_with('-') && next->find('=') != std::string::npos;
}

// A spelling of the other scheduler would be lost in this job.
void SynonymOptions::check_scheduler(const Synonym& synonym, const std::string& typed) {
  const bool is_scheduler = synonym.dialect == Dialect::slurm || synonym.dialect == Dialect::pbs;
  if (!is_scheduler || is_launch() || synonym.meaning == Meaning::noted || synonym.dialect == arguments_.dialect())
    return;
  throw UsageError({.what = text::concat(typed, " is an option of ", launching::name_of(synonym.dialect),
                                         ", and this is a ", launching::name_of(arguments_.dialect()), " job"),
                    .hint = "--scheduler slurm or --scheduler pbs chooses the scheduler"});
}

std::string SynonymOptions::value_of(const Synonym& synonym, const TypedOption& option) {
  switch (synonym.takes) {
    case Takes::value:
      return reader_.value_of(option);
    case Takes::two_values: {
      const auto first = reader_.value_of(option);
      return first + " " + reader_.value_of({.argument = "", .spelling = option.spelling, .value = {}});
    }
    case Takes::nothing:
      if (!option.value) return "";
      throw UsageError({.what = text::concat(option.spelling, " has no value, got ", text::quote(*option.value))});
    case Takes::optional:
      return option.value.value_or("");
  }
  return "";
}

void SynonymOptions::take_value(const Synonym& synonym, const std::string& typed, const std::string& value) {
  switch (synonym.meaning) {
    case Meaning::setting:
      return take_setting(synonym, typed, value);
    case Meaning::directive:
      return take_directive(synonym, typed, value);
    case Meaning::pbs_line:
      return take_line(synonym, typed, std::string(synonym.text) + value);
    case Meaning::option:
      return take_launcher_option(synonym, typed, value);
    case Meaning::resources:
      return take_resources(typed, value);
    case Meaning::gres:
      return take_gres(typed, value);
    case Meaning::variables:
      return take_variables(synonym, typed, value);
    case Meaning::mail_points:
      return arguments_.set("mail_type", mail_types_of(value, typed), typed);
    case Meaning::attributes:
      if (value.starts_with("depend=")) return arguments_.set("dependency", value.substr(7), typed);
      return take_line(synonym, typed, "-W " + value);
    case Meaning::noted:
    case Meaning::refused:
      return arguments_.note(typed, std::string(synonym.text));
  }
}

void SynonymOptions::take_setting(const Synonym& synonym, const std::string& typed, const std::string& value) {
  const auto& key = launching::find_key(synonym.text, "");
  if (!arguments_.has_flag(key)) return arguments_.add_at_launch(synonym.at_launch, value, typed);
  if (key.kind == launching::KeyKind::onoff) {
    const auto is_on = value.empty() ? std::optional(true) : text::parse_bool(value);
    if (is_on) return *is_on ? arguments_.add_switch("--" + launching::flag_of(key)) : void();
    return arguments_.add_to("directives", text::concat(synonym.spelling, '=', value));  // Slurm's --exclusive=user
  }
  arguments_.set(synonym.text, synonym.takes == Takes::nothing ? std::string(synonym.fixed) : value, typed);
}

void SynonymOptions::take_directive(const Synonym& synonym, const std::string& typed, const std::string& value) {
  const auto line = with_value(synonym.text, value);
  if (!is_launch()) return arguments_.add_to("directives", line);
  if (!synonym.at_launch.empty()) return arguments_.add_at_launch(synonym.at_launch, value, typed);
  arguments_.add_for_srun(line, typed);
}

// A line for PBS.
void SynonymOptions::take_line(const Synonym& synonym, const std::string& typed, const std::string& line) {
  if (!is_launch()) return arguments_.add_to("directives", line);
  arguments_.add_at_launch(synonym.at_launch, "", typed);
}

void SynonymOptions::take_launcher_option(const Synonym& synonym, const std::string& typed, const std::string& value) {
  const bool is_srun = synonym.dialect == Dialect::slurm;
  const auto option = with_value(synonym.text, value, is_srun ? "=" : " ");
  if (is_launch() && is_srun) return arguments_.add_for_srun(option, typed);
  arguments_.add_to("launcher_options", option);
}

void SynonymOptions::take_resources(const std::string& typed, const std::string& value) {
  const auto whole = text::concat(typed, ' ', value);
  for (const auto& resource : launching::parse_pbs_resources(value)) {
    if (resource.key.empty()) {
      arguments_.add_to("directives", resource.value);
    } else if (resource.key == "chunk_resources") {
      arguments_.add_to(resource.key, resource.value);
    } else {
      arguments_.set(resource.key, resource.value, whole);
    }
  }
}

void SynonymOptions::take_gres(const std::string& typed, const std::string& value) {
  const bool is_gpu = value == "gpu" || value.starts_with("gpu:");
  if (is_gpu && value.find(',') == std::string::npos)
    return arguments_.set("gpus_per_node", value == "gpu" ? "1" : value.substr(4), typed);
  const auto line = "--gres=" + value;
  if (!is_launch()) return arguments_.add_to("directives", line);
  arguments_.add_for_srun(line, typed);
}

void SynonymOptions::take_variables(const Synonym& synonym, const std::string& typed, std::string value) {
  if (synonym.takes == Takes::two_values) {
    value[value.find(' ')] = '=';
    return arguments_.set("environment", value, typed);
  }
  const bool is_list = arguments_.dialect() == Dialect::pbs;
  for (const auto& one : assignments_of(value, typed, is_list)) arguments_.set("environment", one, typed);
}

}  // namespace hortator::tools
