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
  const auto said = settings.word("scheduler");
  if (said) return *said == "pbs" ? launching::Scheduler::pbs : launching::Scheduler::slurm;
  if (find_program("sbatch")) return launching::Scheduler::slurm;
  if (find_program("qsub")) return launching::Scheduler::pbs;
  throw UsageError({.what = "there is neither sbatch nor qsub on PATH",
                    .why = "the scheduler is one of them",
                    .hint = "say --scheduler slurm or pbs"});
}

std::string stamp() {
  const auto seconds = std::time(nullptr);
  std::tm now{};
  localtime_r(&seconds, &now);
  std::array<char, 32> words{};
  std::strftime(words.data(), words.size(), "%Y%m%d-%H%M%S", &now);
  return words.data();
}

void write_script(const std::filesystem::path& file, const std::string& script) {
  std::filesystem::create_directories(file.parent_path());
  write_file(file, script);
  std::filesystem::permissions(file, std::filesystem::perms::owner_exec, std::filesystem::perm_options::add);
}

// What sbatch and qsub print holds the job's name: its first line, in parsable form.
std::string submit(launching::Scheduler scheduler, const std::filesystem::path& script, const std::string& after) {
  std::vector<std::string> words = {scheduler == launching::Scheduler::slurm ? "sbatch" : "qsub"};
  if (scheduler == launching::Scheduler::slurm) words.emplace_back("--parsable");
  if (!after.empty() && scheduler == launching::Scheduler::slurm) words.push_back("--dependency=afterany:" + after);
  if (!after.empty() && scheduler == launching::Scheduler::pbs)
    words.insert(words.end(), {"-W", "depend=afterany:" + after});
  words.push_back(script.string());
  const auto answer = result_of(launching::shell_line(words));
  auto id = text::split(text::first_line(answer.output), ';').front();
  if (answer.code != 0 || id.empty()) {
    throw Error({.what = words.front() + " refused the job: " + text::first_line(answer.output),
                 .hint = "the script is " + script.string()});
  }
  return id;
}

}  // namespace hortator::tools
