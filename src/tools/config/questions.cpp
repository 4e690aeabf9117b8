#include "tools/config/questions.hpp"

#include <cctype>
#include <filesystem>
#include <hortator/error.hpp>
#include <iostream>
#include <set>

#include "core/text/text.hpp"
#include "launch/job/node_facts.hpp"
#include "launch/job/quote.hpp"
#include "tools/job/submitting.hpp"
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

std::string answer_for(const launching::Layer& answers, std::string_view key) {
  const auto answer = answers.find(key);
  return answer == answers.end() ? "" : answer->second.values.front();
}

bool shards(const launching::Layer& answers) {
  const auto stage = answer_for(answers, "zero_stage");
  return !stage.empty() && stage != "0" && stage != "NO_SHARD";
}

bool shards_parameters(const launching::Layer& answers) {
  const auto stage = answer_for(answers, "zero_stage");
  return stage == "3" || stage == "FULL_SHARD" || stage == "HYBRID_SHARD";
}

// How a run is trained: what Accelerate asks for FSDP, DeepSpeed and parallelism. Without an answer the program
// decides.
void add_training_questions(std::vector<Question>& list) {
  const auto several = [](const launching::Layer& answers) { return answer_for(answers, "ranks") != "1"; };
  list.push_back({"zero_stage",
                  "what to shard over the ranks (0 nothing, 1 optimizer state, 2 and gradients, 3 and parameters)", "",
                  true, several});
  list.push_back(
      {"offload_optimizer", "where to keep the optimizer's state between steps (cpu, or a folder)", "", true, shards});
  list.push_back({"offload_parameters", "where to keep parameters between their uses (cpu, or a folder)", "", true,
                  shards_parameters});
  list.push_back({"replicate", "replicas of the set of shards", "", true, shards});
  list.push_back({"tensor", "ranks that divide the features of the model among them", "", true, several});
  list.push_back({"context", "ranks that divide each sequence among them", "", true, several});
  list.push_back({"gradient_accumulation_steps", "micro-steps between two updates", "", true});
  list.push_back({"gradient_clipping", "largest norm of the gradients in an update", "", true});
  list.push_back({"recompute_layers", "layers whose activations are recomputed (all, or names of classes)", "", true});
  list.push_back({"debug", "check before each collective that all ranks agree on it (yes, no)", "", true, several});
}

}  // namespace

std::vector<Question> questions() {
  const auto schedulers = schedulers_at_hand();
  const bool has_slurm = !schedulers.empty() && schedulers.front() == launching::Scheduler::slurm;
  std::vector<Question> list;
  if (!schedulers.empty()) {
    list.push_back({"scheduler", "scheduler of your jobs", std::string(launching::facts_of(schedulers.front()).name)});
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
    add_training_questions(list);
    return list;
  }
  const int gpus = gpu_count();
  list.push_back({"ranks", "ranks on this machine", std::to_string(gpus > 0 ? gpus : core_count())});
  list.push_back({"mixed_precision", "type of the forward pass (no, fp16, bf16)", "no"});
  add_training_questions(list);
  return list;
}

launching::Layer ask(const std::vector<Question>& questions, std::istream& in, std::ostream& out) {
  launching::Layer answers;
  for (const auto& question : questions) {
    if (question.applies && !question.applies(answers)) continue;
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

std::vector<Question> with_defaults(std::vector<Question> questions, const launching::Layer& file) {
  for (auto& question : questions) {
    const auto known = answer_for(file, question.key);
    if (known.empty()) continue;
    question.found = known;
    question.is_guess = false;
  }
  return questions;
}

launching::Layer found_answers(const std::vector<Question>& questions) {
  launching::Layer answers;
  for (const auto& question : questions) {
    if (!question.found.empty() && !question.is_guess) answers[question.key] = {{question.found}, "found"};
  }
  return answers;
}

}  // namespace hortator::tools
