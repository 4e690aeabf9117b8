#include "tools/why/cause.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <csignal>
#include <regex>

namespace hortator::tools {
namespace {

using enum Decision;
using enum StopScope;

// Types that a program's logic throws, and LibTorch for wrong arguments.
const std::vector<std::string_view> program_types = {"c10::Error",
                                                     "c10::IndexError",
                                                     "c10::ValueError",
                                                     "c10::TypeError",
                                                     "c10::NotImplementedError",
                                                     "c10::LinAlgError",
                                                     "std::logic_error",
                                                     "std::out_of_range",
                                                     "std::length_error",
                                                     "std::invalid_argument",
                                                     "std::domain_error",
                                                     "std::bad_cast",
                                                     "bad_optional_access",
                                                     "bad_variant_access",
                                                     "bad_function_call",
                                                     "bad_any_cast",
                                                     "c10::EnforceFiniteError"};

const std::vector<Rule>& table() {
  static const std::vector<Rule> rules = {
#include "tools/why/rules.inc"
  };
  return rules;
}

// For jobs whose ranks have left no record.
const std::vector<Rule>& launcher_table() {
  static const std::vector<Rule> rules = {
      {.id = "node-lost",
       .error_class = "node",
       .reason = "a node was lost; the others, or a spare one, continue",
       .blames_host = true,
       .texts = {"lost communication with a remote daemon", "orte has lost communication",
                 "prte has lost communication", "node failure", "node_fail", "daemon has died unexpectedly",
                 "daemons on one or more nodes", "has unexpectedly failed or disconnected"}},
      {.id = "time-limit",
       .error_class = "time-limit",
       .reason = "the job's time was over; the next job continues",
       .texts = {"due to time limit", "walltime"}},
      {.id = "preempted",
       .error_class = "preempted",
       .reason = "another job took the nodes; the next one continues",
       .texts = {"due to preemption"}},
      {.id = "launcher-memory",
       .error_class = "memory",
       .reason = "the node's memory was full; other processes pass, a need does not",
       .texts = {"oom-kill", "out-of-memory", "oom_kill"}},
      {.id = "slots",
       .error_class = "usage",
       .decision = stop,
       .reason = "more ranks were asked for than there is room for",
       .texts = {"not enough slots", "more processors requested than permitted"}},
  };
  return rules;
}

const Rule& rule_not_started() {
  static const Rule rule = {.id = "not-started",
                            .error_class = "installation",
                            .decision = stop,
                            .reason = "the program could not be started: is it there, and may it be executed?"};
  return rule;
}

std::string small(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

bool has_any_of(std::string_view text, std::span<const std::string_view> parts) {
  return parts.empty() ||
         std::ranges::any_of(parts, [&](std::string_view part) { return text.find(part) != text.npos; });
}

template <typename T, typename Value>
bool is_any(const Value& value, const std::vector<T>& all) {
  return all.empty() || std::ranges::find(all, value) != all.end();
}

bool matches(const Rule& rule, const runtime::EndingRecord& ending, std::string_view problem) {
  return is_any(std::string_view(ending.kind), rule.kinds) && is_any(ending.signal, rule.signals) &&
         has_any_of(ending.type, rule.types) && has_any_of(problem, rule.texts) && has_any_of(problem, rule.also);
}

}  // namespace

std::string_view to_string(Decision decision) { return decision == retry ? "retry" : "stop"; }

std::span<const Rule> rules() { return table(); }

const Rule& rule_of(const runtime::EndingRecord& ending) {
  // A signal's record explains itself at length: its text must not be read as an error's.
  if (ending.signal != 0) {
    if (shows_oom_kill(ending.problem)) return rule_named("memory-host");
    const auto found = std::ranges::find_if(
        table(), [&](const Rule& rule) { return !rule.signals.empty() && is_any(ending.signal, rule.signals); });
    return found != table().end() ? *found : rule_named("killed");
  }
  const auto problem = small(ending.problem);
  return *std::ranges::find_if(table(), [&](const Rule& rule) { return matches(rule, ending, problem); });
}

const Rule* launcher_rule(int exit_code, std::string_view report, bool has_begun) {
  const auto text = small(report);
  for (const auto& rule : launcher_table()) {
    if (has_any_of(text, rule.texts)) return &rule;
  }
  if (exit_code == 130) return &rule_named("interrupted");
  if (exit_code == 205) return &launcher_table().front();  // Open MPI's, for a lost daemon
  if ((exit_code == 126 || exit_code == 127) && !has_begun) return &rule_not_started();
  if (exit_code > 128 && exit_code < 160) {
    return &rule_of({.kind = "signal", .signal = exit_code - 128});
  }
  return nullptr;
}

const Rule& rule_named(std::string_view id) {
  return *std::ranges::find_if(table(), [&](const Rule& rule) { return rule.id == id; });
}

bool is_program_type(std::string_view type) { return !type.empty() && has_any_of(type, program_types); }

bool shows_oom_kill(std::string_view problem) {
  static const std::regex form(R"(oom_kill in \S+: (\d{1,15}) before the run, (\d{1,15}) now)");
  std::match_results<std::string_view::const_iterator> found;
  if (!std::regex_search(problem.begin(), problem.end(), found, form)) return false;
  return std::stoll(found.str(2)) > std::stoll(found.str(1));
}

}  // namespace hortator::tools
