#include <chrono>
#include <iomanip>
#include <sstream>

#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "tools/plan/check.hpp"

namespace hortator::tools {
namespace {

using Json = nlohmann::ordered_json;

std::string duration(double seconds) { return units::duration(std::chrono::duration<double>(seconds)); }
std::string bytes(double count) { return units::bytes(static_cast<std::uint64_t>(count)); }

void add_row(std::ostringstream& out, std::size_t number, const CheckedRun& run) {
  const auto flags = planning::launch_flags(run.candidate);
  const auto ranks = run.candidate.ranks();
  const auto settings = text::concat("-n ", ranks, flags.empty() ? "" : " ", flags);
  out << std::right << std::setw(3) << number << "  ";
  if (const auto& why = run.problem.empty() ? run.not_run : run.problem; !why.empty()) {
    out << settings << (run.problem.empty() ? ": not run, " : ": failed, ") << why << '\n';
    return;
  }
  const auto& cost = run.predicted.cost;
  out << std::left << std::setw(12) << duration(cost.time.total()) << std::setw(12) << duration(run.seconds)
      << std::setw(12) << bytes(cost.memory.total()) << std::setw(12) << bytes(run.bytes) << settings << '\n';
}

}  // namespace

std::string check_text(const RunPlan& plan) {
  std::ostringstream out;
  out << "run here:\n     update                  memory of a rank\n     predicted   measured    predicted   measured  "
         "  "
         "settings\n";
  for (std::size_t i = 0; i < plan.checked.size(); ++i) add_row(out, i + 1, plan.checked[i]);
  return std::move(out).str();
}

Json check_json(const RunPlan& plan) {
  auto rows = Json::array();
  for (const auto& run : plan.checked) {
    Json row = {{"settings", planning::launch_flags(run.candidate)}, {"ranks", run.candidate.ranks()}};
    if (!run.not_run.empty()) {
      row["not_run"] = run.not_run;
    } else if (!run.problem.empty()) {
      row["problem"] = run.problem;
    } else {
      const auto& cost = run.predicted.cost;
      row["predicted"] = {{"seconds", cost.time.total()}, {"bytes", cost.memory.total()}};
      row["measured"] = {{"seconds", run.seconds}, {"bytes", run.bytes}};
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace hortator::tools
