#include "tools/job/submitting.hpp"

#include <array>
#include <ctime>
#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "launch/job/job_id.hpp"
#include "launch/job/quote.hpp"
#include "tools/programs.hpp"
#include "tools/written_file.hpp"

namespace hortator::tools {
namespace {

// Slurm brings a qsub of its own, which is no reason to doubt.
bool is_pbs_qsub() {
  return find_program("qsub") && run_command("qsub --version").output.find("pbs_version") != std::string::npos;
}

std::string stamp() {
  const auto seconds = std::time(nullptr);
  std::tm now{};
  localtime_r(&seconds, &now);
  std::array<char, 32> digits{};
  std::strftime(digits.data(), digits.size(), "%Y%m%d-%H%M%S", &now);
  return digits.data();
}

}  // namespace

launching::Scheduler scheduler_of(const launching::Settings& settings) {
  const auto given = settings.word("scheduler");
  if (given) return *given == "pbs" ? launching::Scheduler::pbs : launching::Scheduler::slurm;
  const bool has_slurm = find_program("sbatch").has_value();
  if (has_slurm && is_pbs_qsub()) {
    throw UsageError({.what = "Both sbatch and PBS's qsub are on PATH",
                      .why = "the job would be written for one and may be meant for the other",
                      .hint = "use --scheduler slurm or --scheduler pbs, or put scheduler into hortator.yaml"});
  }
  if (has_slurm) return launching::Scheduler::slurm;
  if (find_program("qsub")) return launching::Scheduler::pbs;
  throw UsageError({.what = "Neither sbatch nor qsub is on PATH",
                    .why = "the scheduler is detected by them",
                    .hint = "use --scheduler slurm or --scheduler pbs"});
}

std::string make_stamped_folder(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  const auto now = stamp();
  for (int i = 1;; ++i) {
    const auto name = i == 1 ? now : text::concat(now, '-', i);
    if (std::filesystem::create_directory(folder / name)) return name;
  }
}

void write_script(const std::filesystem::path& file, const std::string& script) {
  std::filesystem::create_directories(file.parent_path());
  write_file(file, script);
  std::filesystem::permissions(file, std::filesystem::perms::owner_exec, std::filesystem::perm_options::add);
}

std::vector<std::string> submit_command(launching::Scheduler scheduler, const std::filesystem::path& script,
                                        const ChainLink& link) {
  const bool is_slurm = scheduler == launching::Scheduler::slurm;
  std::vector<std::string> command = {is_slurm ? "sbatch" : "qsub"};
  if (is_slurm) command.emplace_back("--parsable");
  if (!link.after.empty() && is_slurm) command.push_back("--dependency=afterany:" + link.after);
  if (!link.after.empty() && !is_slurm) command.insert(command.end(), {"-W", "depend=afterany:" + link.after});
  if (link.number > 1 && !is_slurm) command.insert(command.end(), {"-v", text::concat("HORTATOR_LINK=", link.number)});
  command.push_back(script.string());
  if (link.number > 1 && is_slurm) command.push_back(std::to_string(link.number));
  return command;
}

std::string submit(launching::Scheduler scheduler, const std::filesystem::path& script, const ChainLink& link) {
  const auto command = submit_command(scheduler, script, link);
  const auto answer = run_command(launching::shell_line(command));
  if (answer.code != 0) {
    throw Error({.what = text::quote(command.front()) + " refused the job: " + answer.output,
                 .hint = "the script is " + script.string()});
  }
  const auto id = launching::job_id(scheduler, answer.output);
  if (id) return *id;
  throw Error(
      {.what = text::quote(command.front()) + " printed no job number: " + answer.output,
       .why = "the job may have been submitted, and no other one can wait for it",
       .hint = "look for it with " + std::string(scheduler == launching::Scheduler::slurm ? "squeue" : "qstat")});
}

}  // namespace hortator::tools
