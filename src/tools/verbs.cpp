#include "tools/verbs.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <hortator/version.hpp>
#include <iomanip>
#include <iostream>
#include <map>
#include <sstream>

#include "core/text/text.hpp"
#include "tools/programs.hpp"

namespace hortator::tools {
namespace {

namespace po = boost::program_options;

Options own_options() {
  Options options;
  options.named.add_options()("help,h", "print this help")("version", "print the version");
  return options;
}

void print_help(std::ostream& out) {
  out << "Hortator runs LibTorch training on several ranks with MPI.\n\n"
         "usage: hortator VERB [options]\n\n"
      << listing(verbs()) << "\n`hortator help VERB` describes a verb; `hortator --version` prints the version.\n";
}

int run_program(const Verb& verb, const Arguments& arguments) {
  Arguments command = {verb_program(verb.name).string()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  replace_process(command);
}

int run_without_verb(const Arguments& arguments) {
  const auto values = parse(arguments, own_options());
  if (values.contains("version")) {
    std::cout << "hortator " HORTATOR_VERSION "\n";
  } else {
    print_help(std::cout);
  }
  return 0;
}

// What other tools call a verb, as the command of Hortator.
std::string verb_of_others(const std::string& name, std::string_view kind) {
  static const std::map<std::string, std::string> of_checkpoint = {
      {"ls", "list"},        {"inspect", "show"}, {"info", "show"}, {"check", "verify"},
      {"convert", "export"}, {"compare", "diff"}, {"rm", "prune"},  {"delete", "prune"}};
  if (kind == "checkpoint verb") {
    const auto found = of_checkpoint.find(name);
    return found == of_checkpoint.end() ? "" : text::concat("`hortator checkpoint ", found->second, '`');
  }
  if (kind != "verb") return "";
  static const std::map<std::string, std::string> counterparts = {
      {"run", "`hortator launch`"},          {"srun", "`hortator launch`"},
      {"mpirun", "`hortator launch`"},       {"start", "`hortator launch`"},
      {"submit", "`hortator job --submit`"}, {"sbatch", "`hortator job --submit`"},
      {"qsub", "`hortator job --submit`"},   {"status", "`hortator watch`"},
      {"diagnose", "`hortator why`"},        {"estimate", "`hortator estimate-memory`"}};
  const auto found = counterparts.find(name);
  return found == counterparts.end() ? "" : found->second;
}

// `help job` is `job --help`, `help checkpoint diff` is `checkpoint diff --help`.
Arguments help_arguments(const Arguments& arguments) {
  Arguments asked(arguments.begin() + 1, arguments.end());
  asked.emplace_back("--help");
  return asked;
}

}  // namespace

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> table = {
      {"config", "asks for settings and saves them; shows the settings in effect", config_verb},
      {"launch", "starts a program on several ranks, with mpirun or srun", launch_verb},
      {"job", "writes and submits a Slurm or PBS job that resumes after its time limit", job_verb},
      {"sweep", "submits one job array over a grid of arguments", sweep_verb},
      {"new", "creates a project that is ready to build", new_verb},
      {"doctor", "finds causes of slow, hanging or failing runs, and prints the fix"},
      {"test", "tests this installation on the nodes of an allocation", test_verb},
      {"watch", "shows the progress of a run, once or continuously", watch_verb},
      {"why", "says where and why a run failed, and whether a restart can help", why_verb},
      {"compare-runs", "names the first operator that computes something else in another run", compare_runs_verb},
      {"plot", "plots the loss and the step rate of runs", plot_verb},
      {"scale", "measures a program on several numbers of ranks and reports its scaling", scale_verb},
      {"trace", "joins the traces of all ranks, and shows where their time goes", trace_verb},
      {"plan", "finds the settings with which a program fits into memory and is fastest", plan_verb},
      {"rehearse", "runs a program as one rank of many, without the others: memory, traffic, errors", rehearse_verb},
      {"env", "prints versions, machine and environment for a bug report"},
      {"checkpoint", "lists, verifies, compares, imports and exports checkpoints"},
      {"estimate-memory", "estimates the memory that a model needs, from its files"},
      {"tokenize", "turns the lines of a file into a model's tokens, and back"},
      {"bench", "runs benchmarks, each against a reference in the same process"},
      {"completion", "prints a script for bash completion of verbs and options", completion_verb},
  };
  return table;
}

std::string listing(const std::vector<Verb>& verbs) {
  std::size_t width = 15;
  for (const auto& verb : verbs) width = std::max(width, std::string_view(verb.name).size());
  std::ostringstream out;
  for (const auto& verb : verbs)
    out << "  " << std::left << std::setw(static_cast<int>(width) + 2) << verb.name << verb.summary << '\n';
  return std::move(out).str();
}

const Verb& find(const std::vector<Verb>& verbs, const std::string& name, std::string_view kind) {
  const auto verb =
      std::find_if(verbs.begin(), verbs.end(), [&](const Verb& candidate) { return candidate.name == name; });
  if (verb != verbs.end()) return *verb;
  std::vector<std::string> names;
  for (const auto& known : verbs) names.push_back(known.name);
  const auto counterpart = verb_of_others(name, kind);
  throw UsageError({.what = text::concat("Unknown ", kind, " ", text::quote(name)),
                    .hint = counterpart.empty() ? text::suggestion(name, names) : "use " + counterpart});
}

int run(const Arguments& arguments) {
  if (arguments.empty()) {
    print_help(std::cerr);
    return 2;
  }
  if (arguments.front().starts_with('-')) return run_without_verb(arguments);
  if (arguments.front() == "help") return run(help_arguments(arguments));
  const Arguments remaining(arguments.begin() + 1, arguments.end());
  if (arguments.front() == "keep") return keep_verb(remaining);
  const auto& verb = find(verbs(), arguments.front(), "verb");
  return verb.run != nullptr ? verb.run(remaining) : run_program(verb, remaining);
}

int run_guarded(int argc, char** argv, int (*verb)(const Arguments& arguments)) {
  try {
    return verb({argv + 1, argv + argc});
  } catch (const UsageError& error) {
    std::cerr << "hortator: " << error.what() << "\n";
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "hortator: " << error.what() << "\n";
    return 1;
  }
}

}  // namespace hortator::tools
