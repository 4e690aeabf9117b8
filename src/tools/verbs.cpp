#include "tools/verbs.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <hortator/version.hpp>
#include <iomanip>
#include <iostream>
#include <sstream>

#include "core/text/text.hpp"
#include "tools/programs.hpp"

namespace hortator::tools {
namespace {

namespace po = boost::program_options;

Options own_options() {
  Options options;
  options.named.add_options()("help,h", "what there is")("version", "which version this is");
  return options;
}

void print_help(std::ostream& out) {
  out << "hortator keeps the ranks of a LibTorch training run in time.\n\n"
         "usage: hortator VERB [options]\n\n"
      << listing(verbs()) << "\n`hortator VERB --help` says more; `hortator --version` which version this is.\n";
}

int run_program(const Verb& verb, const Arguments& arguments) {
  Arguments words = {(libexec_folder() / ("hortator-" + verb.name)).string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  become(words);
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

}  // namespace

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> table = {
      {"config", "asks for settings once, and says which hold", config_verb},
      {"launch", "starts a program on several ranks, with mpirun or srun", launch_verb},
      {"job", "makes a job for Slurm or PBS that outlives its time limit", job_verb},
      {"new", "makes a project that builds at once", new_verb},
      {"doctor", "looks for what makes runs slow, hang or fail here, and says the remedy"},
      {"test", "checks this installation on the nodes where it runs", test_verb},
      {"watch", "shows how a run is, from its folder: now, or as it goes", watch_verb},
      {"plot", "draws loss and rate of runs, as SVG or PNG", plot_verb},
      {"scale", "measures a program on several numbers of ranks, and reports", scale_verb},
      {"env", "reports versions, machine and environment, fit for a bug report"},
      {"checkpoint", "lists, verifies and compares checkpoints, brings weights in and out"},
      {"estimate-memory", "says what a model takes, by its files alone"},
      {"bench", "measures, always against a reference in the same process"},
      {"completion", "prints what makes bash complete verbs and options", completion_verb},
  };
  return table;
}

std::string listing(const std::vector<Verb>& verbs) {
  std::ostringstream out;
  for (const auto& verb : verbs) out << "  " << std::left << std::setw(17) << verb.name << verb.summary << '\n';
  return std::move(out).str();
}

const Verb& find(const std::vector<Verb>& verbs, const std::string& name, std::string_view kind) {
  const auto verb =
      std::find_if(verbs.begin(), verbs.end(), [&](const Verb& candidate) { return candidate.name == name; });
  if (verb != verbs.end()) return *verb;
  std::vector<std::string> names;
  for (const auto& known : verbs) names.push_back(known.name);
  throw UsageError(
      {.what = text::concat("there is no ", kind, " ", text::quote(name)), .hint = text::suggestion(name, names)});
}

int run(const Arguments& arguments) {
  if (arguments.empty()) {
    print_help(std::cerr);
    return 2;
  }
  if (arguments.front().starts_with('-')) return run_without_verb(arguments);
  const auto& verb = find(verbs(), arguments.front(), "verb");
  const Arguments rest(arguments.begin() + 1, arguments.end());
  return verb.run != nullptr ? verb.run(rest) : run_program(verb, rest);
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
