#include "tools/job/submitting.hpp"

#include <array>
#include <ctime>
#include <hortator/error.hpp>

#include "core/environment/environment.hpp"
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

// A qsub without PBS's version is Slurm's, where there is an sbatch, and Grid Engine's, where SGE_ROOT is set.
std::vector<launching::Scheduler> schedulers_at_hand() {
  using launching::Scheduler;
  std::vector<Scheduler> found;
  const bool has_slurm = find_program("sbatch").has_value();
  const bool is_grid_engine = find_program("qsub") && core::variable("SGE_ROOT") && !is_pbs_qsub();
  if (has_slurm) found.push_back(Scheduler::slurm);
  if (is_grid_engine) found.push_back(Scheduler::grid_engine);
  if (!is_grid_engine && (has_slurm ? is_pbs_qsub() : find_program("qsub").has_value()))
    found.push_back(Scheduler::pbs);
  if (find_program("bsub")) found.push_back(Scheduler::lsf);
  if (find_program("flux")) found.push_back(Scheduler::flux);
  return found;
}

launching::Scheduler scheduler_of(const launching::Settings& settings) {
  const auto given = settings.word("scheduler");
  if (given) return *launching::scheduler_named(*given);
  const auto found = schedulers_at_hand();
  if (found.size() > 1) {
    std::vector<std::string> names;
    for (const auto scheduler : found) names.emplace_back(launching::facts_of(scheduler).title);
    throw UsageError({.what = text::concat("The commands of several schedulers are on PATH: ", text::join(names, ", ")),
                      .why = "the job would be written for one and may be meant for another",
                      .hint = text::concat("use --scheduler ", launching::facts_of(found.front()).name,
                                           " or another one, or put scheduler into hortator.yaml")});
  }
  if (!found.empty()) return found.front();
  throw UsageError({.what = "Neither sbatch, qsub, bsub nor flux is on PATH",
                    .why = "the scheduler is detected by them",
                    .hint = "use --scheduler with one of: " + launching::scheduler_names()});
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
  using launching::Scheduler;
  const auto number = link.number > 1 ? text::concat("HORTATOR_LINK=", link.number) : "";
  const auto add = [&](std::vector<std::string> command, const std::vector<std::string>& after,
                       const std::vector<std::string>& of_link) {
    if (!link.after.empty()) command.insert(command.end(), after.begin(), after.end());
    if (!number.empty()) command.insert(command.end(), of_link.begin(), of_link.end());
    command.push_back(script.string());
    return command;
  };
  switch (scheduler) {
    case Scheduler::slurm: {
      auto command = add({"sbatch", "--parsable"}, {"--dependency=afterany:" + link.after}, {});
      if (!number.empty()) command.push_back(std::to_string(link.number));
      return command;
    }
    case Scheduler::pbs:
      return add({"qsub"}, {"-W", "depend=afterany:" + link.after}, {"-v", number});
    case Scheduler::flux:
      return add({"flux", "batch"}, {"--dependency=afterany:" + link.after}, {"--env=" + number});
    case Scheduler::grid_engine:
      return add({"qsub", "-terse"}, {"-hold_jid", link.after}, {"-v", number});
    case Scheduler::lsf: {
      // bsub reads the directives only from a script on its standard input, and passes all variables on.
      std::vector<std::string> arguments = {"bsub"};
      if (!link.after.empty()) arguments.insert(arguments.end(), {"-w", text::concat("ended(", link.after, ')')});
      return {"sh", "-c",
              text::concat(number, number.empty() ? "" : " ", launching::shell_line(arguments), " < ",
                           launching::shell_quote(script.string()))};
    }
  }
  throw Error({.what = "Unknown scheduler"});
}

std::string submit(launching::Scheduler scheduler, const std::filesystem::path& script, const ChainLink& link) {
  const auto& facts = launching::facts_of(scheduler);
  const auto command = submit_command(scheduler, script, link);
  const auto answer = run_command(launching::shell_line(command));
  if (answer.code != 0) {
    throw Error({.what = text::concat(text::quote(facts.submits), " refused the job: ", answer.output),
                 .hint = "the script is " + script.string()});
  }
  const auto id = launching::job_id(scheduler, answer.output);
  if (id) return *id;
  throw Error({.what = text::concat(text::quote(facts.submits), " printed no job number: ", answer.output),
               .why = "the job may have been submitted, and no other one can wait for it",
               .hint = text::concat("look for it with ", facts.lists)});
}

}  // namespace hortator::tools
