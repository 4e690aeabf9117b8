#include "tools/job/submitting.hpp"

#include <array>
#include <ctime>
#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "launch/job/quote.hpp"
#include "tools/programs.hpp"
#include "tools/written_file.hpp"

namespace hortator::tools {

launching::Scheduler scheduler_of(const launching::Settings& settings) {
  const auto given = settings.word("scheduler");
  if (given) return *given == "pbs" ? launching::Scheduler::pbs : launching::Scheduler::slurm;
  if (find_program("sbatch")) return launching::Scheduler::slurm;
  if (find_program("qsub")) return launching::Scheduler::pbs;
  throw UsageError({.what = "Neither sbatch nor qsub is on PATH",
                    .why = "the scheduler is detected by them",
                    .hint = "use --scheduler slurm or --scheduler pbs"});
}

std::string stamp() {
  const auto seconds = std::time(nullptr);
  std::tm now{};
  localtime_r(&seconds, &now);
  std::array<char, 32> digits{};
  std::strftime(digits.data(), digits.size(), "%Y%m%d-%H%M%S", &now);
  return digits.data();
}

void write_script(const std::filesystem::path& file, const std::string& script) {
  std::filesystem::create_directories(file.parent_path());
  write_file(file, script);
  std::filesystem::permissions(file, std::filesystem::perms::owner_exec, std::filesystem::perm_options::add);
}

// sbatch --parsable and qsub print the job's id on their first line.
std::string submit(launching::Scheduler scheduler, const std::filesystem::path& script, const std::string& after) {
  std::vector<std::string> command = {scheduler == launching::Scheduler::slurm ? "sbatch" : "qsub"};
  if (scheduler == launching::Scheduler::slurm) command.emplace_back("--parsable");
  if (!after.empty() && scheduler == launching::Scheduler::slurm) command.push_back("--dependency=afterany:" + after);
  if (!after.empty() && scheduler == launching::Scheduler::pbs)
    command.insert(command.end(), {"-W", "depend=afterany:" + after});
  command.push_back(script.string());
  const auto answer = run_command(launching::shell_line(command));
  auto id = text::split(text::first_line(answer.output), ';').front();
  if (answer.code != 0 || id.empty()) {
    throw Error({.what = text::quote(command.front()) + " refused the job: " + text::first_line(answer.output),
                 .hint = "the script is " + script.string()});
  }
  return id;
}

}  // namespace hortator::tools
