#include <unistd.h>

#include <cstdlib>
#include <hortator/error.hpp>
#include <iostream>

#include "base/text.hpp"
#include "cli/machine.hpp"
#include "cli/programs.hpp"
#include "cli/verbs.hpp"
#include "launch/command.hpp"
#include "launch/quote.hpp"

namespace hortator::cli {
namespace {

namespace po = boost::program_options;

struct Wish {
  launch::Request request = {};
  bool help = false;
  bool dry_run = false;
};

Options known_options() {
  Options options;
  options.rest_is_foreign = true;
  options.named.add_options()("ranks,n", po::value<std::string>()->value_name("N"), "how many ranks, over all nodes")(
      "debug", "compare what all ranks are about to do before each collective (HORTATOR_DEBUG=1)")(
      "dry-run", "print the command and stop")("help,h", "this text");
  options.positional.add("program", -1);
  return options;
}

// The program's words have a name for the parser, but are no option that a user could give.
Options parsed_options() {
  auto options = known_options();
  options.named.add_options()("program", po::value<std::vector<std::string>>());
  return options;
}

void print_help() {
  std::cout << "usage: hortator launch -n N [--debug] [--dry-run] PROGRAM [ARGUMENTS]\n\n"
               "Starts PROGRAM on N ranks: with srun inside a Slurm allocation, else with the mpirun on PATH. "
               "Everything after\n"
               "PROGRAM belongs to PROGRAM. The exit code is the launcher's, which is not 0 if any rank failed.\n\n"
            << known_options().named;
}

int rank_count(const po::variables_map& values) {
  if (!values.contains("ranks")) throw UsageError({.what = "the number of ranks is missing", .hint = "say -n N"});
  const auto word = values["ranks"].as<std::string>();
  long long ranks = 0;
  if (!text::parse_integer(word, ranks) || ranks <= 0 || ranks > 100'000'000) {
    throw UsageError({.what = text::quote(word) + " is no number of ranks", .hint = "say -n N with N of at least 1"});
  }
  return static_cast<int>(ranks);
}

Wish read_wish(const Arguments& arguments) {
  const auto values = parse(arguments, parsed_options());
  if (values.contains("help")) return {.help = true};
  Wish wish{.dry_run = values.contains("dry-run")};
  wish.request.ranks = rank_count(values);
  if (!values.contains("program")) {
    throw UsageError({.what = "the program is missing", .hint = "say what to start: hortator launch -n 2 ./train"});
  }
  const auto words = values["program"].as<std::vector<std::string>>();
  wish.request.program = words.front();
  wish.request.arguments = {words.begin() + 1, words.end()};
  if (values.contains("debug")) wish.request.variables.emplace_back("HORTATOR_DEBUG=1");
  return wish;
}

void check_program(const std::string& program) {
  if (find_program(program)) return;
  const bool has_path = program.find('/') != std::string::npos;
  if (!has_path && find_program("./" + program)) {
    throw UsageError({.what = "there is no program " + text::quote(program) + " on PATH",
                      .hint = "did you mean './" + program + "'?"});
  }
  if (has_path && std::filesystem::exists(program)) {
    throw UsageError({.what = text::quote(program) + " is not an executable file", .hint = "build it, or chmod +x it"});
  }
  throw UsageError({.what = "there is no program " + text::quote(program) + (has_path ? "" : " on PATH"),
                    .hint = "check the name and the folder"});
}

bool is_set(const char* variable) { return std::getenv(variable) != nullptr; }

std::optional<int> cpus_per_task() {
  const char* words = std::getenv("SLURM_CPUS_PER_TASK");
  long long count = 0;
  if (words == nullptr || !text::parse_integer(words, count)) return std::nullopt;
  return static_cast<int>(count);
}

void require(const std::string& launcher, const std::string& hint) {
  if (!find_program(launcher))
    throw Error({.what = "there is no " + launcher + " on PATH", .why = "it starts the ranks", .hint = hint});
}

launch::Facts look_around() {
  launch::Facts facts{.in_slurm = is_set("SLURM_JOB_ID"),
                      .cpus_per_task = cpus_per_task(),
                      .in_other_batch_job = is_set("PBS_NODEFILE") || is_set("LSB_JOBID"),
                      .is_root = geteuid() == 0,
                      .cores = core_count(),
                      .is_confined = is_confined()};
  if (facts.in_slurm) {
    require(
        "srun",
        "this is a Slurm allocation (SLURM_JOB_ID is set): load the site's Slurm, or unset SLURM_JOB_ID to use mpirun");
  } else {
    require("mpirun", "load your site's MPI module, or install openmpi-bin (Debian, Ubuntu) or openmpi (Rocky)");
    facts.mpi = launch::mpi_flavor(output_of("mpirun --version"));
  }
  return facts;
}

}  // namespace

int launch_verb(const Arguments& arguments) {
  const auto wish = read_wish(arguments);
  if (wish.help) {
    print_help();
    return 0;
  }
  check_program(wish.request.program);
  const auto command = launch::command_line(wish.request, look_around());
  if (wish.dry_run) {
    std::cout << launch::shell_line(command) << "\n";
    return 0;
  }
  become(command);
}

}  // namespace hortator::cli
