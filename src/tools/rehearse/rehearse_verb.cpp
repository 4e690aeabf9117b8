#include <algorithm>
#include <hortator/error.hpp>
#include <iostream>

#include "core/environment/setting_key.hpp"
#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "tools/command_line/command_line.hpp"
#include "tools/launch/launch_environment.hpp"
#include "tools/rehearse/rehearsal_view.hpp"
#include "tools/verbs.hpp"

namespace hortator::tools {
namespace {

namespace po = boost::program_options;

Options rehearse_options() {
  Options options;
  options.ends_at_text = true;
  options.named.add_options()("ranks,n", po::value<int>()->value_name("N"), "ranks of the world to rehearse")(
      "rank", po::value<std::string>()->default_value("0")->value_name("R,R,..."),
      "the ranks that are rehearsed, one after the other")("ranks-per-node", po::value<int>()->value_name("N"),
                                                           "ranks of a node; 8, or all if there are fewer")(
      "memory", po::value<std::string>()->value_name("SIZE"), "memory of a rank, such as 80GiB: more is an error")(
      "json", "print one JSON object instead of text")("help,h", "print this help");
  return options;
}

int print_rehearse_help() {
  std::cout
      << "usage: hortator rehearse --ranks N [--rank R,R,...] [options] -- PROGRAM [ARGUMENTS]\n\n"
         "Runs PROGRAM as rank R of N ranks on one core, without the other ranks: groups, shapes and sizes are those "
         "of\n"
         "the whole run, nothing is sent, and operators on large tensors compute shapes only. After the first update "
         "it\n"
         "reports the memory at its peak by owner, what the rank sends along each axis, and its groups; or the error\n"
         "that this rank would meet. PROGRAM needs no change, and its run folder is left alone; what it writes by its "
         "own code on rank 0 it writes\n"
         "here, too.\n\n"
         "  hortator rehearse --ranks 4096 --rank 317 -- ./train --tensor 8 --pipeline 4\n"
         "  hortator rehearse -n 64 --rank 0,7,63 --memory 80GiB -- ./train --zero 3\n\n"
         "exit code: 0 all ranks rehearsed; 1 one fails, or needs more than --memory; 2 wrong usage\n\n"
      << rehearse_options().named;
  return 0;
}

int positive(const po::variables_map& values, const char* name, int otherwise) {
  const int number = values.contains(name) ? values[name].as<int>() : otherwise;
  if (number >= 1) return number;
  throw UsageError({.what = text::concat("--", name, ": expected a whole number from 1, got ", number)});
}

RehearsalPlan rehearsal_plan(const po::variables_map& values) {
  if (!values.contains("program")) {
    throw UsageError({.what = "The program is missing",
                      .hint = "name it after --: hortator rehearse --ranks 64 --rank 3 -- ./train"});
  }
  if (!values.contains("ranks")) {
    throw UsageError({.what = "--ranks: a value is missing",
                      .why = "it is the number of ranks of the run that is rehearsed",
                      .hint = "add --ranks N"});
  }
  const int ranks = positive(values, "ranks", 1);
  return {.ranks = ranks,
          .ranks_of_a_node = positive(values, "ranks-per-node", std::min(ranks, usual_ranks_of_a_node)),
          .command = values["program"].as<std::vector<std::string>>()};
}

std::vector<int> asked_ranks(const std::string& text, int all) {
  std::vector<int> ranks;
  for (const auto& part : text::split(text, ',')) {
    const auto rank = core::parse_whole_number(part, 0);
    if (!rank || *rank >= all) {
      throw UsageError(
          {.what = text::concat("--rank: expected numbers from 0 to ", all - 1, ", got ", text::quote(part)),
           .why = text::concat("the world that is rehearsed has ", text::count(all, "rank"))});
    }
    ranks.push_back(*rank);
  }
  return ranks;
}

}  // namespace

int rehearse_verb(const Arguments& arguments) {
  const auto values = parse(arguments, with_text(rehearse_options(), "program"));
  if (values.contains("help")) return print_rehearse_help();
  const auto plan = rehearsal_plan(values);
  const auto wanted = asked_ranks(values["rank"].as<std::string>(), plan.ranks);
  const auto memory = values.contains("memory") ? units::parse_bytes(values["memory"].as<std::string>()) : 0;
  check_program(plan.command.front());
  std::vector<RehearsedRank> ranks;
  for (const int rank : wanted) ranks.push_back(rehearse_rank(plan, rank));
  std::cout << (values.contains("json") ? rehearsal_json(plan, ranks, memory) : rehearsal_text(plan, ranks, memory));
  const auto bad = [memory](const RehearsedRank& rank) { return is_bad(rank, memory); };
  return std::ranges::any_of(ranks, bad) ? 1 : 0;
}

}  // namespace hortator::tools
