#include "tools/command_line/parser_arguments.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <iostream>
#include <utility>

#include "core/text/text.hpp"
#include "launch/settings/walltime.hpp"
#include "tools/command_line/typed_option.hpp"
#include "tools/command_line/typed_values.hpp"

namespace hortator::tools {
namespace {

using launching::Dialect;
using launching::KeyKind;

constexpr auto only_jobs = "`hortator job` asks the scheduler for it";

bool has_many_values(const launching::Key& key) { return key.kind == KeyKind::list || key.kind == KeyKind::variables; }

// Users of Slurm and mpirun mean a number of nodes.
void refuse_number_as_name(const launching::Key& key, const std::string& value, const std::string& typed) {
  if (key.name != "job_name" || typed != "-N" || value.find_first_not_of("0123456789") != std::string::npos) return;
  throw UsageError({.what = text::concat("-N: with PBS it is the name of the job, got ", text::quote(value)),
                    .hint = text::concat("use --nodes ", value, ", or --job-name ", value, " if that is the name")});
}

}  // namespace

std::optional<std::size_t> GivenSettings::add(const std::string& flag, Option option) {
  const auto [entry, is_first] = options_.try_emplace(flag, option);
  if (is_first) return {};
  auto& earlier = entry->second;
  if (earlier.typed != option.typed && earlier.value != option.value) {
    throw UsageError({.what = text::concat(earlier.typed, " and ", option.typed, " both set --", flag, ", to ",
                                           text::quote(earlier.value), " and to ", text::quote(option.value)),
                      .hint = "leave out one of them"});
  }
  earlier.value = std::move(option.value);
  return earlier.position;
}

Dialect ParserArguments::dialect() {
  if (!dialect_) dialect_ = options_.dialect != nullptr ? options_.dialect(typed_) : Dialect::slurm;
  return *dialect_;
}

const boost::program_options::option_description* ParserArguments::find(const std::string& name) const {
  return options_.named.find_nothrow(name, /*approx=*/false);
}

bool ParserArguments::has_flag(const launching::Key& key) const { return find(launching::flag_of(key)) != nullptr; }

bool ParserArguments::sets(std::string_view flag) const {
  const auto begin = text::concat("--", flag, '=');
  return std::ranges::any_of(list_, [&](const auto& argument) { return argument.starts_with(begin); });
}

void ParserArguments::add_switch(const std::string& argument) {
  if (std::ranges::find(list_, argument) == list_.end()) list_.push_back(argument);
}

void ParserArguments::put(const launching::Key& key, const std::string& value, const std::string& typed) {
  const auto flag = launching::flag_of(key);
  const auto argument = text::concat("--", flag, '=', value);
  const auto earlier =
      has_many_values(key) ? std::nullopt : given_.add(flag, {with_dashes(typed), value, list_.size()});
  if (earlier) {
    list_[*earlier] = argument;
  } else {
    list_.push_back(argument);
  }
}

void ParserArguments::set(std::string_view name, std::string value, const std::string& typed) {
  const auto& key = launching::find_key(name, "");
  const auto flag = launching::flag_of(key);
  if (!has_flag(key)) return note(typed, only_jobs);
  if (key.kind == KeyKind::onoff) return add_switch("--" + flag);
  if (key.kind == KeyKind::time)
    value = dialect() == Dialect::pbs ? launching::time_of_pbs(value) : launching::time_of_slurm(value);
  if (!options_.own_flags.contains(flag)) launching::check_values(key, {value}, typed + ": ");
  refuse_number_as_name(key, value, typed);
  put(key, value, typed);
}

void ParserArguments::add_to(std::string_view name, const std::string& value) {
  const auto& key = launching::find_key(name, "");
  if (!has_flag(key)) return note(value, only_jobs);
  add(text::concat("--", launching::flag_of(key), '=', value));
}

void ParserArguments::add_for_srun(const std::string& option, const std::string& typed) {
  if (dialect() != Dialect::slurm) return note(typed, "only srun has it, and mpirun starts the ranks here");
  add_to("launcher_options", option);
}

void ParserArguments::add_at_launch(std::string_view instead, const std::string& value, const std::string& typed) {
  if (!options_.is_launch) {
    throw UsageError({.what = typed + " is only for `hortator launch`",
                      .hint = "a job's nodes and GPUs come from the scheduler: use --nodes and --gpus-per-node"});
  }
  if (instead == "refused") {
    throw UsageError({.what = typed + " needs a job", .hint = "use `hortator job`"});
  }
  if (instead.starts_with("setting ")) return set(instead.substr(8), value, typed);
  if (instead.empty()) return note(typed, only_jobs);
  add_for_srun(with_value(instead, value), typed);
}

void ParserArguments::note(const std::string& typed, const std::string& why) {
  if (noted_.insert(with_dashes(typed)).second) std::cerr << "hortator: " << typed << " has no effect: " << why << "\n";
}

}  // namespace hortator::tools
