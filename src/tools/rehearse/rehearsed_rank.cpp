#include "tools/rehearse/rehearsed_rank.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <hortator/error.hpp>

#include "core/text/json.hpp"
#include "core/text/text.hpp"
#include "core/whole_file.hpp"
#include "launch/job/quote.hpp"
#include "tools/launch/supervise.hpp"

namespace hortator::tools {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view misses_inputs = "does not know the shapes of its inputs";

/// A folder that goes with its contents.
class PassingFolder {
 public:
  PassingFolder() {
    auto name = (fs::temp_directory_path() / "hortator-rehearsal-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr)
      throw Error({.what = text::concat("A folder for the rehearsal could not be made in ",
                                        text::quote(fs::temp_directory_path().string())),
                   .hint = "set TMPDIR to a folder in which you may write"});
    path_ = name;
  }
  ~PassingFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  PassingFolder(const PassingFolder&) = delete;
  PassingFolder& operator=(const PassingFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string end_of(const std::string& output) {
  constexpr std::size_t lines_shown = 20;
  auto lines = text::split(output, '\n');
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  if (lines.size() > lines_shown) lines.erase(lines.begin(), lines.end() - lines_shown);
  return text::join(lines, "\n");
}

RehearsedRank run_as(const RehearsalPlan& plan, int rank, const std::string& stage_inputs) {
  const PassingFolder folder;
  const auto report = folder.path() / "report.json";
  const auto log = folder.path() / "output.log";
  std::vector<std::string> command = {
      "env", text::concat("HORTATOR_REHEARSE=", rank, '/', plan.ranks, '/', plan.ranks_of_a_node),
      "HORTATOR_MEMORY_REPORT=" + report.string(), "HORTATOR_RUN_DIR=" + (folder.path() / "run").string()};
  command.insert(command.end(), plan.variables.begin(), plan.variables.end());
  if (!stage_inputs.empty()) command.push_back("HORTATOR_STAGE_INPUTS=" + stage_inputs);
  command.insert(command.end(), plan.command.begin(), plan.command.end());
  const std::vector<std::string> shell = {
      "/bin/sh", "-c",
      "exec " + launching::shell_line(command) + " >" + launching::shell_quote(log.string()) + " 2>&1 </dev/null"};
  const auto begin = std::chrono::steady_clock::now();
  const int code = supervise(shell).code;
  const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  RehearsedRank result{
      .rank = rank, .code = code, .output = end_of(core::read_whole(log).value_or("")), .seconds = seconds};
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
  const auto first = run_as(plan, 0, "");
  if (!first.report.is_object()) return first;
  return run_as(plan, rank, first.report.value("stage_outputs", ""));
}

}  // namespace hortator::tools
