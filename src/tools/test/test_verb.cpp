#include <hortator/error.hpp>
#include <iostream>

#include "core/text/text.hpp"
#include "tools/launch/batch.hpp"
#include "tools/programs.hpp"
#include "tools/verbs.hpp"

namespace hortator::tools {
namespace {

namespace po = boost::program_options;

int print_test_help() {
  std::cout
      << "usage: hortator test [-n N] [--config-file FILE] [--dir FOLDER] [--here] [--json]\n\n"
         "Tests this installation on the nodes where it runs: ranks, each communication back end, a checkpoint in\n"
         "FOLDER, the loader, a model that is paged from disk, and a training with a known result. Prints a table\n"
         "with times; takes up to half a minute.\n\n"
         "  hortator test -n 2                                (starts two ranks)\n"
         "  hortator test --config-file default_config.yaml   (starts the ranks of a settings file, also of "
         "Accelerate)\n"
         "  srun -N 2 -n 8 hortator test --dir /scratch/me    (in a job; mpirun works, too)\n\n"
         "On a login node (a machine with a scheduler, outside of a job) it needs --here.\n\n"
         "exit code: 0 all passed; 1 a check failed; 2 wrong usage\n\n"
      << test_options().named;
  return 0;
}

void check_login_node(const po::variables_map& values) {
  const auto batch = detect_batch();
  if (!batch.is_login_node() || values.contains("here")) return;
  throw UsageError({.what = text::concat("This is a login node of ", batch.scheduler),
                    .why = "the test uses all cores of its ranks",
                    .hint = "run it in a job (srun hortator test), or add --here"});
}

}  // namespace

Options test_options() {
  Options options;
  options.named.add_options()("ranks,n", po::value<int>()->value_name("N"),
                              "start N ranks; otherwise test the ranks that a launcher has started")(
      "config-file", po::value<std::string>()->value_name("FILE"),
      "start ranks as this settings file describes them; files of Accelerate work, too")(
      "dir", po::value<std::string>()->default_value(".")->value_name("FOLDER"),
      "folder of the test checkpoint: use the file system of your runs")("here", "run even on a login node")(
      "json", "print the results as JSON")("help,h", "print this help");
  return options;
}

int test_verb(const Arguments& arguments) {
  const auto values = parse(arguments, test_options());
  if (values.contains("help")) return print_test_help();
  check_login_node(values);
  const auto program = verb_program("test").string();
  Arguments ranks_program = {program, "--dir", values["dir"].as<std::string>()};
  if (values.contains("json")) ranks_program.emplace_back("--json");
  if (!values.contains("ranks") && !values.contains("config-file")) replace_process(ranks_program);
  Arguments command = {"/proc/self/exe", "launch"};
  if (values.contains("ranks")) command.insert(command.end(), {"-n", std::to_string(values["ranks"].as<int>())});
  if (values.contains("config-file"))
    command.insert(command.end(), {"--config-file", values["config-file"].as<std::string>()});
  command.insert(command.end(), ranks_program.begin(), ranks_program.end());
  replace_process(command);
}

}  // namespace hortator::tools
