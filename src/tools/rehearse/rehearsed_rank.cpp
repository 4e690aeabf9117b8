#include "tools/rehearse/rehearsed_rank.hpp"

#include <chrono>
#include <filesystem>
#include <string_view>

#include "core/passing_folder.hpp"
#include "core/text/json.hpp"
#include "core/text/text.hpp"
#include "core/whole_file.hpp"
#include "tools/rehearse/logged_run.hpp"

namespace hortator::tools {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view misses_inputs = "does not know the shapes of its inputs";

RehearsedRank run_as(const RehearsalPlan& plan, int rank, const std::string& stage_inputs) {
  const core::PassingFolder folder(fs::temp_directory_path(), "hortator-rehearsal");
  const auto report = folder.path() / "report.json";
  const auto log = folder.path() / "output.log";
  std::vector<std::string> command = {
      "env", text::concat("HORTATOR_REHEARSE=", rank, '/', plan.ranks, '/', plan.ranks_of_a_node),
      "HORTATOR_MEMORY_REPORT=" + report.string(), "HORTATOR_RUN_DIR=" + (folder.path() / "run").string()};
  command.insert(command.end(), plan.variables.begin(), plan.variables.end());
  if (!stage_inputs.empty()) command.push_back("HORTATOR_STAGE_INPUTS=" + stage_inputs);
  command.insert(command.end(), plan.command.begin(), plan.command.end());
  const auto begin = std::chrono::steady_clock::now();
  const int code = run_logged(command, log);
  const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  RehearsedRank result{
      .rank = rank, .code = code, .output = end_of_output(core::read_whole(log).value_or("")), .seconds = seconds};
  if (result.output.empty()) result.output = text::concat("hortator: the program printed nothing, exit code ", code);
  if (const auto json = core::read_whole(report)) {
    auto parsed = core::parse_record<nlohmann::ordered_json>(*json);
    if (parsed.is_object()) result.report = std::move(parsed);
  }
  return result;
}

}  // namespace

RehearsedRank rehearse_rank(const RehearsalPlan& plan, int rank) {
  auto result = run_as(plan, rank, "");
  if (result.code == 0 || result.output.find(misses_inputs) == std::string::npos) return result;
  auto first = run_as(plan, 0, "");
  if (!first.report.is_object()) return first;
  return run_as(plan, rank, first.report.value("stage_outputs", ""));
}

}  // namespace hortator::tools
