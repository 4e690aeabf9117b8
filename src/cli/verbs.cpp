#include "cli/verbs.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <hortator/version.hpp>
#include <iomanip>
#include <iostream>
#include <sstream>

#include "base/text.hpp"

namespace hortator::cli {
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
      {"launch", "starts a program on several ranks, with mpirun or srun", launch_verb},
      {"env", "reports versions, machine and environment, fit for a bug report", env_verb},
      {"checkpoint", "lists, shows and verifies checkpoints", checkpoint_verb},
      {"bench", "measures, always against a reference in the same process", bench_verb},
  };
  return table;
}

std::string listing(const std::vector<Verb>& verbs) {
  std::ostringstream out;
  for (const auto& verb : verbs) out << "  " << std::left << std::setw(12) << verb.name << verb.summary << '\n';
  return std::move(out).str();
}

const Verb& find(const std::vector<Verb>& verbs, const std::string& name, const std::string& kind) {
  const auto verb =
      std::find_if(verbs.begin(), verbs.end(), [&](const Verb& candidate) { return candidate.name == name; });
  if (verb != verbs.end()) return *verb;
  std::vector<std::string> names;
  for (const auto& known : verbs) names.push_back(known.name);
  throw UsageError({.what = "there is no " + kind + " " + text::quote(name), .hint = text::suggestion(name, names)});
}

int run(const Arguments& arguments) {
  if (arguments.empty()) {
    print_help(std::cerr);
    return 2;
  }
  if (arguments.front().starts_with('-')) return run_without_verb(arguments);
  return find(verbs(), arguments.front(), "verb").run({arguments.begin() + 1, arguments.end()});
}

}  // namespace hortator::cli
