#include <hortator/error.hpp>
#include <iostream>

#include "core/text/text.hpp"
#include "tools/launch/batch.hpp"
#include "tools/programs.hpp"
#include "tools/verbs.hpp"

namespace hortator::tools {
namespace {

namespace po = boost::program_options;

int print_help() {
  std::cout
      << "usage: hortator test [-n N] [--dir FOLDER] [--here]\n\n"
         "Checks this installation on the nodes where it runs: ranks, each way to communicate, a checkpoint in "
         "FOLDER, the\n"
         "loader, a model that is paged from disk, a training whose end is known. Prints a table with times, in\n"
         "seconds to half a minute.\n\n"
         "  hortator test -n 2                                (starts two ranks)\n"
         "  srun -N 2 -n 8 hortator test --dir /scratch/me    (in a job; mpirun does as well)\n\n"
         "On a machine with a scheduler, outside of its jobs, it refuses without --here: others work there, too.\n\n"
         "exit code: 0 all passed; 1 a check failed; 2 wrong usage\n\n"
      << test_options().named;
  return 0;
}

void check_place(const po::variables_map& values) {
  const auto batch = look_for_batch();
  if (!batch.is_login_node() || values.contains("here")) return;
  throw UsageError({.what = text::concat("this is a login node of ", batch.scheduler),
                    .why = "the test takes all cores that its ranks get",
                    .hint = "run it in a job (srun hortator test), or say --here"});
}

}  // namespace

Options test_options() {
  Options options;
  options.named.add_options()("ranks,n", po::value<int>()->value_name("N"),
                              "starts so many ranks; without it, the ranks are those that were started")(
      "dir", po::value<std::string>()->default_value(".")->value_name("FOLDER"),
      "where the checkpoint is written: on the file system that matters")("here", "also on a login node")("help,h",
                                                                                                          "this text");
  return options;
}

int test_verb(const Arguments& arguments) {
  const auto values = parse(arguments, test_options());
  if (values.contains("help")) return print_help();
  check_place(values);
  const auto program = (libexec_folder() / "hortator-test").string();
  const Arguments rest = {program, "--dir", values["dir"].as<std::string>()};
  if (!values.contains("ranks")) become(rest);
  Arguments words = {"/proc/self/exe", "launch", "-n", std::to_string(values["ranks"].as<int>())};
  words.insert(words.end(), rest.begin(), rest.end());
  become(words);
}

}  // namespace hortator::tools
