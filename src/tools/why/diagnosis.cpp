#include "tools/why/diagnosis.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <map>
#include <set>

#include "core/signal_name.hpp"
#include "core/text/text.hpp"

namespace hortator::tools {
namespace {

using runtime::EndingRecord;

// Clocks of nodes differ, and a broken connection is seen within milliseconds.
constexpr double clock_slack = 2;
// A watchdog waits at least ten seconds before it reports a stall: what it follows from is older.
constexpr double stall_slack = 0;

struct Judged {
  const EndingRecord* ending;
  const Rule* rule;
};

std::vector<Judged> judged_by_time(const std::vector<EndingRecord>& endings) {
  std::vector<Judged> all;
  for (const auto& ending : endings) all.push_back({.ending = &ending, .rule = &rule_of(ending)});
  std::ranges::stable_sort(all, [](const Judged& a, const Judged& b) { return a.ending->time < b.ending->time; });
  return all;
}

/// The first record; or, if that usually follows from another rank's end, the first of those that do not and are not
/// later than the clocks' difference allows. A rank that was killed can be the first cause only of what came later.
const Judged& initiating(const std::vector<Judged>& all) {
  const auto& first = all.front();
  if (!first.rule->is_consequence) return first;
  const double slack = first.ending->kind == "stall" ? stall_slack : clock_slack;
  const auto found = std::ranges::find_if(all, [&](const Judged& each) {
    return !each.rule->is_consequence && each.ending->time <= first.ending->time + slack;
  });
  return found == all.end() ? first : *found;
}

bool is_shared(const std::vector<Judged>& all, const Judged& first, const Evidence& evidence) {
  if (evidence.world <= 1 || evidence.hosts <= 1) return true;
  std::set<int> ranks;
  for (const auto& each : all) {
    if (each.rule->id == first.rule->id) ranks.insert(each.ending->rank);
  }
  return ranks.size() > 1;
}

bool all_say_the_same(const std::vector<Judged>& all, const std::string& signature) {
  return std::ranges::all_of(all, [&](const Judged& each) {
    // Ranks that were killed were killed with the job.
    return each.rule->is_consequence || each.ending->signal != 0 ||
           signature_of(std::string(each.rule->error_class), *each.ending) == signature;
  });
}

// Errors of the surroundings last as long as they last: another attempt at the same step is no proof of a bug.
bool is_repeatable(std::string_view error_class) {
  constexpr std::array<std::string_view, 8> passing = {"network", "storage", "device", "node",
                                                       "killed",  "busy",    "ended",  "preempted"};
  return std::ranges::find(passing, error_class) == passing.end();
}

const observe::RestartRecord* same_before(const Diagnosis& diagnosis, const Evidence& evidence) {
  if (evidence.earlier.empty() || !diagnosis.rank || !is_repeatable(diagnosis.error_class)) return nullptr;
  const auto& before = evidence.earlier.back();
  const auto tolerance = std::max(before.step_tolerance, diagnosis.step_tolerance);
  const bool is_same = before.rank == diagnosis.rank.value_or(-1) && before.signature == diagnosis.signature &&
                       std::llabs(before.step - diagnosis.step) <= tolerance;
  return is_same ? &before : nullptr;
}

void apply_repetition(Diagnosis& diagnosis, const Evidence& evidence) {
  if (diagnosis.decision != Decision::retry) return;
  const auto* before = same_before(diagnosis, evidence);
  if (before == nullptr) return;
  diagnosis.decision = Decision::stop;
  diagnosis.rule = "repeated";
  diagnosis.reason = text::concat("the same error came twice, at step ", diagnosis.step,
                                  ": that is a bug, which another restart meets again");
}

void take_rule(Diagnosis& diagnosis, const Rule& rule) {
  diagnosis.decision = rule.decision;
  diagnosis.rule = rule.id;
  diagnosis.error_class = rule.error_class;
  diagnosis.reason = rule.reason;
  if (rule.blames_host) diagnosis.suspect_host = diagnosis.host;
}

std::string text_of(const EndingRecord& ending) {
  if (!ending.problem.empty()) return ending.problem;
  if (ending.signal == 0) return ending.kind;
  return text::concat("Killed by signal ", ending.signal, " (", core::signal_name(ending.signal), ')');
}

void take_ending(Diagnosis& diagnosis, const EndingRecord& ending, const Evidence& evidence) {
  diagnosis.rank = ending.rank;
  diagnosis.host = ending.host;
  diagnosis.place = ending.where;
  diagnosis.problem = text_of(ending);
  diagnosis.time = ending.time;
  const bool is_own = ending.reporter == ending.rank && ending.updates > 0;
  diagnosis.step = is_own ? ending.updates : std::max(ending.updates, evidence.updates);
  diagnosis.step_tolerance = is_own ? 0 : evidence.step_tolerance;
}

// Before the first update all ranks do the same with the same settings. A status counts the update that has begun: the
// other ranks may wait in their first one for a rank that has failed before its own.
bool is_at_start(const EndingRecord& ending, const Evidence& evidence) {
  const std::int64_t begun = ending.reporter == ending.rank ? 1 : 0;
  return ending.updates == 0 && evidence.updates <= begun && evidence.new_updates <= begun;
}

void decide_by_endings(Diagnosis& diagnosis, const std::vector<Judged>& all, const Evidence& evidence) {
  const auto& first = initiating(all);
  take_ending(diagnosis, *first.ending, evidence);
  take_rule(diagnosis, *first.rule);
  diagnosis.signature = signature_of(diagnosis.error_class, *first.ending);
  if (diagnosis.decision == Decision::stop && first.rule->scope == StopScope::when_shared &&
      !is_shared(all, first, evidence)) {
    diagnosis.decision = Decision::retry;
    diagnosis.suspect_host = diagnosis.host;
    diagnosis.reason += "; only one rank of several nodes sees it, so that its node is suspect";
  }
  if (is_at_start(*first.ending, evidence) && is_program_type(first.ending->type) &&
      diagnosis.decision == Decision::retry && diagnosis.error_class == "program" && is_shared(all, first, evidence) &&
      all_say_the_same(all, diagnosis.signature)) {
    diagnosis.decision = Decision::stop;
    diagnosis.rule = "error-at-start";
    diagnosis.reason = "the program threw an error of its own before its first update, which it will again";
  }
}

// Ranks by what they reported, in the order of the first of them.
void add_cascade(Diagnosis& diagnosis, const std::vector<Judged>& all) {
  const auto& first = initiating(all);
  diagnosis.chain.push_back({.role = Role::initiating,
                             .ranks = {first.ending->rank},
                             .host = first.ending->host,
                             .time = first.ending->time,
                             .text = diagnosis.problem});
  std::map<std::string, std::size_t> links;
  std::set<int> named = {first.ending->rank};
  for (const auto& each : all) {
    if (!named.insert(each.ending->rank).second) continue;
    const auto key = signature_of(std::string(each.rule->error_class), *each.ending);
    const bool is_new = links.emplace(key, diagnosis.chain.size()).second;
    if (is_new) {
      diagnosis.chain.push_back(
          {.role = Role::cascade, .host = each.ending->host, .time = each.ending->time, .text = text_of(*each.ending)});
    }
    diagnosis.chain[links[key]].ranks.push_back(each.ending->rank);
  }
  for (auto& link : diagnosis.chain) std::ranges::sort(link.ranks);
}

void add_teardown(Diagnosis& diagnosis, const Evidence& evidence) {
  std::set<int> named;
  for (const auto& link : diagnosis.chain) named.insert(link.ranks.begin(), link.ranks.end());
  FailureLink link{.role = Role::teardown, .text = "ended with the job, without a record of their own"};
  for (const auto& rank : evidence.unended) {
    if (named.contains(rank.rank)) continue;
    if (link.ranks.empty()) link.host = rank.host;
    link.ranks.push_back(rank.rank);
  }
  if (!link.ranks.empty()) diagnosis.chain.push_back(std::move(link));
}

// The rank whose status is the oldest, if it is older than the others' by more than they differ.
const UnendedRank* longest_silent(const Evidence& evidence) {
  const auto oldest = std::ranges::min_element(evidence.unended, {}, &UnendedRank::time);
  if (oldest == evidence.unended.end()) return nullptr;
  const auto dead = std::ranges::count_if(evidence.unended, &UnendedRank::is_dead);
  return dead == 1 ? &*std::ranges::find_if(evidence.unended, &UnendedRank::is_dead) : &*oldest;
}

void take_silent(Diagnosis& diagnosis, const Evidence& evidence) {
  diagnosis.step = evidence.updates;
  diagnosis.step_tolerance = evidence.step_tolerance;
  const auto* rank = longest_silent(evidence);
  if (rank == nullptr) return;
  diagnosis.rank = rank->rank;
  diagnosis.host = rank->host;
  diagnosis.time = rank->time;
  diagnosis.place = "its last status: " + rank->phase;
  diagnosis.problem = "Ended without a record, as by SIGKILL or with its node";
}

void decide_by_launcher(Diagnosis& diagnosis, const Evidence& evidence) {
  const auto& launcher = *evidence.launcher;
  const auto* rule = launcher_rule(launcher.exit_code, launcher.report, !launcher.run_id.empty() || evidence.world > 0);
  take_silent(diagnosis, evidence);
  if (!launcher.report.empty()) diagnosis.problem = launcher.report;
  if (diagnosis.problem.empty())
    diagnosis.problem = text::concat("The launcher ended with exit code ", launcher.exit_code);
  take_rule(diagnosis, rule != nullptr ? *rule : rule_named("unknown"));
  diagnosis.signature = text::concat(diagnosis.error_class, ":launcher:", launcher.exit_code);
}

// The signal came to the launcher, not to a rank.
bool was_interrupted(const Evidence& evidence) {
  return evidence.launcher && evidence.launcher->was_signalled && evidence.launcher->exit_code == 128 + SIGINT;
}

void decide_ended(Diagnosis& diagnosis, const Evidence& evidence) {
  if (*evidence.outcome == "finished") {
    diagnosis.decision = Decision::stop;
    diagnosis.rule = diagnosis.error_class = "finished";
    diagnosis.reason = "the run has finished: nothing is left to do";
  } else {
    diagnosis.decision = Decision::retry;
    diagnosis.rule = diagnosis.error_class = "stopped";
    diagnosis.reason = "the run was stopped on purpose, as before a time limit; the next one continues it";
  }
  diagnosis.step = evidence.updates;
}

void decide_failed(Diagnosis& diagnosis, const Evidence& evidence) {
  const auto all = judged_by_time(evidence.endings);
  if (!all.empty()) {
    decide_by_endings(diagnosis, all, evidence);
    add_cascade(diagnosis, all);
  } else if (evidence.launcher) {
    decide_by_launcher(diagnosis, evidence);
  } else {
    take_silent(diagnosis, evidence);
    take_rule(diagnosis, rule_named("killed"));
    diagnosis.signature = "killed:silent";
  }
  if (was_interrupted(evidence)) take_rule(diagnosis, rule_named("interrupted"));
  if (all.empty() && diagnosis.rank) {
    diagnosis.chain.push_back({.role = Role::initiating,
                               .ranks = {*diagnosis.rank},
                               .host = diagnosis.host,
                               .time = diagnosis.time,
                               .text = diagnosis.problem});
  }
  add_teardown(diagnosis, evidence);
  apply_repetition(diagnosis, evidence);
}

}  // namespace

std::string_view to_string(Role role) {
  constexpr std::array<std::string_view, 3> names = {"initiating", "cascade", "teardown"};
  return names[static_cast<std::size_t>(role)];
}

std::string signature_of(const std::string& error_class, const EndingRecord& ending) {
  constexpr std::size_t max_text = 160;
  auto signature = text::concat(error_class, ':', ending.kind, ':', ending.type, ':', ending.signal, ':');
  // A signal's record tells when the rank was last seen, which differs each time.
  if (ending.signal != 0) return signature;
  bool was_digit = false;
  for (const char c : ending.problem.substr(0, max_text)) {
    const bool is_digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!is_digit) signature += c;
    if (is_digit && !was_digit) signature += '#';
    was_digit = is_digit;
  }
  return signature;
}

Diagnosis diagnose(const Evidence& evidence) {
  Diagnosis diagnosis;
  const bool has_failed =
      !evidence.endings.empty() || evidence.launcher || std::ranges::any_of(evidence.unended, &UnendedRank::is_dead);
  if (evidence.outcome) {
    diagnosis.state = *evidence.outcome;
    decide_ended(diagnosis, evidence);
  } else if (has_failed) {
    diagnosis.state = "failed";
    decide_failed(diagnosis, evidence);
  } else if (evidence.is_running) {
    diagnosis.state = "running";
    diagnosis.reason = "its status is up to date";
  } else {
    diagnosis.state = "unknown";
    diagnosis.reason = "no record tells how it ended; the job may still be there, or its nodes were lost";
    take_silent(diagnosis, evidence);
    diagnosis.problem.clear();
  }
  return diagnosis;
}

}  // namespace hortator::tools
