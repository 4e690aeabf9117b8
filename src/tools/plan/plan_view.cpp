#include "tools/plan/plan_view.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <hortator/error.hpp>
#include <iomanip>
#include <optional>
#include <sstream>

#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "launch/job/quote.hpp"
#include "tools/plan/check.hpp"

namespace hortator::tools {
namespace {

using Json = nlohmann::ordered_json;
using planning::Candidate;

std::string gigabytes(double bytes) { return units::bytes(static_cast<std::uint64_t>(bytes)); }
std::string percent(double part, double whole) { return text::print("%.0f %%", whole > 0 ? 100 * part / whole : 0); }

std::string launch_line(const RunPlan& plan, const Candidate& one) {
  auto command = launch_command(plan, one);
  command.insert(command.end(), plan.command.begin(), plan.command.end());
  return "hortator " + launching::shell_line(command);
}

void add_run(std::ostringstream& out, std::size_t number, const RunPlan& plan, const PlannedRun& run) {
  const auto& [candidate, memory, time, throughput] = run.cost;
  const auto flags = planning::launch_flags(candidate);
  out << std::right << std::setw(3) << number << "  " << std::left << std::setw(12)
      << units::duration(std::chrono::duration<double>(time.total())) << std::setw(12) << gigabytes(memory.total())
      << std::setw(7) << percent(time.communicating, time.total()) << std::setw(8) << percent(time.idle, time.total())
      << (flags.empty() ? "(no settings)" : flags) << (run.is_rehearsed ? "" : "   (not rehearsed)") << '\n';
  out << "     parameters " << gigabytes(memory.parameters) << ", gradients " << gigabytes(memory.gradients)
      << ", moments " << gigabytes(memory.moments) << ", activations " << gigabytes(memory.activations) << ", buffers "
      << gigabytes(memory.buffers) << '\n';
  if (number == 1) out << "     " << launch_line(plan, candidate) << '\n';
}

struct NamedSetting {
  std::string_view name;
  int (*value)(const Candidate& one);
};

constexpr std::array settings = {
    NamedSetting{"data", [](const Candidate& one) { return one.data; }},
    NamedSetting{"tensor", [](const Candidate& one) { return one.tensor; }},
    NamedSetting{"context", [](const Candidate& one) { return one.context; }},
    NamedSetting{"pipeline", [](const Candidate& one) { return one.pipeline; }},
    NamedSetting{"zero", [](const Candidate& one) { return one.zero; }},
    NamedSetting{"offload", [](const Candidate& one) { return one.offload ? 2 : 1; }},
    NamedSetting{"recompute", [](const Candidate& one) { return one.recompute ? 2 : 1; }},
    NamedSetting{"micro-batches", [](const Candidate& one) { return one.micro_batches; }},
};

struct Wanted {
  const NamedSetting* setting = nullptr;
  std::optional<int> value;  ///< nothing: any but that of a run without it

  bool is_in(const Candidate& one) const {
    const int has = setting->value(one);
    return value ? has == *value : has > (setting->name == "zero" ? 0 : 1);
  }
};

Wanted wanted_of(const std::string& text) {
  const auto parts = text::split(text, '=');
  const auto* const found = std::ranges::find(settings, parts.front(), &NamedSetting::name);
  std::vector<std::string> names;
  for (const auto& one : settings) names.emplace_back(one.name);
  if (found == settings.end())
    throw UsageError({.what = text::concat("--why: ", text::quote(parts.front()), " is not a setting of a plan"),
                      .hint = text::suggestion(parts.front(), names)});
  Wanted wanted{.setting = found};
  if (parts.size() == 1) return wanted;
  long long value = 0;
  if (!text::parse_integer(parts[1], value) || value < 0 || value > 100'000'000)
    throw UsageError({.what = text::concat("--why: expected NAME or NAME=NUMBER, got ", text::quote(text))});
  wanted.value = static_cast<int>(value);
  return wanted;
}

Json json_of(const RunPlan& plan, const PlannedRun& run) {
  const auto& [candidate, memory, time, throughput] = run.cost;
  Json json = {{"launch", launch_line(plan, candidate)},
               {"settings", planning::launch_flags(candidate)},
               {"variables", planning::variables(candidate)},
               {"data", candidate.data},
               {"tensor", candidate.tensor},
               {"context", candidate.context},
               {"pipeline", candidate.pipeline},
               {"zero", candidate.zero},
               {"offload", candidate.offload},
               {"offload_parameters", candidate.offload_parameters},
               {"recompute", candidate.recompute},
               {"schedule", planning::name_of(candidate.schedule)},
               {"micro_batches", candidate.micro_batches},
               {"rehearsed", run.is_rehearsed},
               {"seconds", time.total()},
               {"computing", time.computing},
               {"communicating", time.communicating},
               {"idle", time.idle},
               {"throughput", throughput},
               {"memory",
                {{"total", memory.total()},
                 {"parameters", memory.parameters},
                 {"gradients", memory.gradients},
                 {"moments", memory.moments},
                 {"buffers", memory.buffers},
                 {"activations", memory.activations}}}};
  if (!run.problem.empty()) json["problem"] = run.problem;
  return json;
}

}  // namespace

std::string plan_text(const RunPlan& plan) {
  std::ostringstream out;
  out << text::count(plan.ranks, "rank") << " with " << units::bytes(plan.machine.memory) << " each, "
      << plan.machine.ranks_per_node << " a node";
  if (plan.assumes_machine)
    out << "; no --machine file: rates are assumed, so that times order the runs and say no more";
  out << "\n\n     update      memory      sends  waits   settings\n";
  for (std::size_t i = 0; i < plan.best.size(); ++i) add_run(out, i + 1, plan, plan.best[i]);
  if (plan.best.empty()) out << "     No run fits. The smallest that were tried:\n";
  for (const auto& run : plan.rejected) {
    if (!plan.best.empty() && run.problem.empty()) continue;
    const auto flags = planning::launch_flags(run.cost.candidate);
    out << "  -  " << (flags.empty() ? "(no settings)" : flags) << ": "
        << (run.problem.empty() ? "needs " + gigabytes(run.cost.memory.total()) : run.problem) << '\n';
  }
  if (!plan.checked.empty()) out << '\n' << check_text(plan);
  for (const auto& [setting, why] : plan.probed.why_not) out << "not used: " << setting << " (" << why << ")\n";
  return std::move(out).str();
}

std::string plan_json(const RunPlan& plan) {
  auto best = Json::array();
  for (const auto& run : plan.best) best.push_back(json_of(plan, run));
  auto rejected = Json::array();
  for (const auto& run : plan.rejected) rejected.push_back(json_of(plan, run));
  Json json = {{"ranks", plan.ranks},
               {"command", plan.command},
               {"machine", Json::parse(planning::to_json(plan.machine))},
               {"assumes_machine", plan.assumes_machine},
               {"best", best},
               {"rejected", rejected},
               {"not_used", plan.probed.why_not}};
  if (!plan.checked.empty()) json["checked"] = check_json(plan);
  return json.dump(2) + "\n";
}

std::string why_text(const RunPlan& plan, const std::vector<planning::Costed>& all, const std::string& setting) {
  const auto wanted = wanted_of(setting);
  const std::string name(wanted.setting->name);
  if (const auto known = plan.probed.why_not.find(name); known != plan.probed.why_not.end())
    return text::concat(name, " cannot be used: ", known->second, '\n');
  const auto is_in = [&](const planning::Costed& one) { return wanted.is_in(one.candidate); };
  const auto found = std::ranges::find_if(all, is_in);
  if (found == all.end()) return text::concat(setting, " does not divide ", text::count(plan.ranks, "rank"), '\n');
  if (!plan.best.empty() && is_in(plan.best.front().cost)) return text::concat(setting, " is in the best run\n");
  const auto flags = planning::launch_flags(found->candidate);
  std::ostringstream out;
  out << "the best run with " << setting << " is predicted to be " << flags << ":\n  memory "
      << gigabytes(found->memory.total()) << (found->fits(plan.machine.memory) ? "" : ", which does not fit")
      << " (parameters " << gigabytes(found->memory.parameters) << ", gradients " << gigabytes(found->memory.gradients)
      << ", moments " << gigabytes(found->memory.moments) << ", activations " << gigabytes(found->memory.activations)
      << ")\n  update " << units::duration(std::chrono::duration<double>(found->time.total())) << ", "
      << percent(found->time.communicating, found->time.total()) << " of it sending, "
      << percent(found->time.idle, found->time.total()) << " waiting in the pipeline\n";
  if (!plan.best.empty())
    out << "  the plan's first has " << text::print("%.2f", plan.best.front().cost.throughput / found->throughput)
        << " times its throughput\n";
  return std::move(out).str();
}

}  // namespace hortator::tools
