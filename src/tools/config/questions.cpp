#include "tools/config/questions.hpp"

#include <cctype>
#include <filesystem>
#include <hortator/error.hpp>
#include <iostream>
#include <set>

#include "core/text/text.hpp"
#include "launch/job/node_facts.hpp"
#include "launch/job/quote.hpp"
#include "tools/launch/machine.hpp"
#include "tools/programs.hpp"

namespace hortator::tools {
namespace {

int gpu_count() {
  int count = 0;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/dev", ignored)) {
    const auto name = entry.path().filename().string();
    if (name.starts_with("nvidia") && name.size() > 6 && std::isdigit(static_cast<unsigned char>(name[6]))) ++count;
  }
  return count;
}

// sinfo marks the default partition by a star.
std::string default_partition() {
  for (const auto& name : text::split(output_of("sinfo -h -o %P"), '\n')) {
    if (name.ends_with('*')) return name.substr(0, name.size() - 1);
  }
  return "";
}

// The GPUs of a partition's nodes; empty if there are none, or different numbers.
std::string gpus_of_nodes(const std::string& partition) {
  const auto option = partition.empty() ? std::string() : " -p " + launching::shell_quote(partition);
  const auto nodes = launching::parse_sinfo(run_command("sinfo -h -e -o '%c|%G'" + option + " 2>/dev/null").output);
  std::set<int> counts;
  for (const auto& node : nodes) {
    int count = 0;
    for (const auto& gpus : node.gpus) count += gpus.count;
    counts.insert(count);
  }
  return counts.size() == 1 && *counts.begin() > 0 ? std::to_string(*counts.begin()) : "";
}

std::string default_account() {
  return text::first_line(output_of("sacctmgr -nP show user \"$(id -un)\" format=defaultaccount"));
}

}  // namespace

std::vector<Question> questions() {
  const bool has_slurm = find_program("sbatch").has_value();
  const bool has_pbs = !has_slurm && find_program("qsub").has_value();
  std::vector<Question> list;
  if (has_slurm || has_pbs) {
    list.push_back({"scheduler", "scheduler of your jobs", has_slurm ? "slurm" : "pbs"});
    list.push_back({"site", "site profile (share/sites)", ""});
    list.push_back({"account", "account to charge", has_slurm ? default_account() : ""});
    const auto queue = has_slurm ? default_partition() : "";
    list.push_back({"queue", "partition or queue", queue});
    const auto gpus = has_slurm ? gpus_of_nodes(queue) : "";
    list.push_back({"time", "time limit of a job", "01:00:00", true});
    list.push_back({"nodes", "nodes of a job", "1", true});
    list.push_back({"gpus_per_node", "GPUs of each node", gpus, true});
    list.push_back({"ranks_per_node", "ranks on each node", gpus, true});
    list.push_back({"mixed_precision", "type of the forward pass (no, fp16, bf16)", "no", true});
    return list;
  }
  const int gpus = gpu_count();
  list.push_back({"ranks", "ranks on this machine", std::to_string(gpus > 0 ? gpus : core_count())});
  list.push_back({"mixed_precision", "type of the forward pass (no, fp16, bf16)", "no"});
  return list;
}

launching::Layer ask(const std::vector<Question>& questions, std::istream& in, std::ostream& out) {
  launching::Layer answers;
  for (const auto& question : questions) {
    while (true) {
      out << question.text << (question.found.empty() ? "" : " [" + question.found + "]") << ": " << std::flush;
      std::string answer;
      if (!std::getline(in, answer)) {
        throw Error({.what = "Input ended before an answer for " + question.key,
                     .hint = "use --default to accept the detected settings"});
      }
      if (answer.empty()) answer = question.found;
      if (answer.empty()) break;
      try {
        launching::check_values(launching::find_key(question.key, ""), {answer}, "");
      } catch (const UsageError& error) {
        out << "  " << error.what() << "\n";
        continue;
      }
      answers[question.key] = {{answer}, "answer"};
      break;
    }
  }
  return answers;
}

launching::Layer found_answers(const std::vector<Question>& questions) {
  launching::Layer answers;
  for (const auto& question : questions) {
    if (!question.found.empty() && !question.is_guess) answers[question.key] = {{question.found}, "found"};
  }
  return answers;
}

}  // namespace hortator::tools
