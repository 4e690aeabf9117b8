#include <algorithm>
#include <hortator/error.hpp>
#include <iostream>

#include "mpi/collectives.hpp"
#include "mpi/environment.hpp"
#include "runtime/launcher.hpp"
#include "runtime/mpi_use.hpp"
#include "tools/doctor/finding.hpp"
#include "tools/doctor/folder.hpp"
#include "tools/doctor/libraries.hpp"
#include "tools/doctor/machine.hpp"
#include "tools/doctor/ranks.hpp"
#include "tools/verbs.hpp"

namespace hortator::tools {
namespace {

using doctor::Findings;

Options known_options() {
  Options options;
  options.named.add_options()("json", "one JSON object in place of text")("help,h", "this text");
  return options;
}

int print_help() {
  std::cout << "usage: hortator doctor [--json] [FOLDER]\n\n"
               "Looks for what makes runs slow, hang or fail on this machine, and says what to do about it. FOLDER "
               "(default: this\n"
               "one) is where checkpoints will go.\n\n"
               "  hortator doctor /scratch/me\n"
               "  hortator launch --nodes 2 --ranks-per-node 4 hortator doctor    (on several nodes)\n\n"
               "exit code: 0 nothing, or only notes and warnings; 1 an error; 2 wrong usage\n\n"
            << known_options().named;
  return 0;
}

void add(Findings& all, Findings more) {
  for (auto& finding : more) all.push_back(std::move(finding));
}

// Ranks that are apart do not know it: the launcher does.
Findings judge_start(const mpi::Communicator& world) {
  try {
    runtime::check_together(runtime::launcher(), world.size(), mpi::library_version());
    return {};
  } catch (const std::exception& error) {
    return {{"start", doctor::Severity::error, error.what(),
             "load the MPI module that Hortator was built with; with Slurm, srun --mpi=pmix"}};
  }
}

// What only ranks together can see. @collective
Findings examine_ranks(const mpi::Communicator& world, const std::string& folder) {
  const auto node = world.node();
  Findings findings = judge_start(world);
  add(findings, judge(doctor::look_at_machine(node.size())));
  if (node.rank() == 0) add(findings, judge(doctor::look_at_folder(folder)));
  add(findings, judge(doctor::look_at_devices(node)));
  add(findings, judge(doctor::look_at_fabric()));
  add(findings, judge(doctor::look_at_binding(node)));
  const auto clocks = judge(doctor::look_at_clocks(world));
  if (world.rank() == 0) add(findings, clocks);
  return findings;
}

void print(const Findings& findings, int ranks, bool as_json) {
  std::cout << (as_json ? for_programs(findings, ranks).dump() + "\n" : for_people(findings, ranks));
}

bool can_start(const Findings& findings) {
  return std::none_of(findings.begin(), findings.end(), [](const doctor::Finding& finding) {
    const bool is_needed = finding.check == "LibTorch" || finding.check == "MPI" || finding.check == "HDF5";
    return is_needed && finding.severity == doctor::Severity::error;
  });
}

// MPI does not start with libraries that do not fit, so that this rank says alone what it sees.
int report_alone(Findings findings, const std::string& folder, bool as_json) {
  add(findings, judge(doctor::look_at_machine(1)));
  add(findings, judge(doctor::look_at_folder(folder)));
  add(findings, judge(doctor::look_at_fabric()));
  print(findings, 1, as_json);
  return 1;
}

/// No hortator::run around it: the doctor leaves no folder of a run behind. @collective
int report_together(Findings findings, const std::string& folder, bool as_json) {
  runtime::start_mpi();
  const runtime::MpiUse until_here;
  const auto world = mpi::Communicator::world();
  add(findings, examine_ranks(world, folder));
  Findings all;
  for (const auto& of_rank : mpi::gather(world, doctor::encode(findings))) add(all, doctor::decode(of_rank));
  const auto merged = doctor::merge(all);
  if (world.rank() == 0) print(merged, world.size(), as_json);
  return mpi::broadcast(world, doctor::has_errors(merged) ? 1 : 0);
}

}  // namespace

int doctor_verb(const Arguments& arguments) {
  const auto values = parse(arguments, with_text(known_options(), "folder"));
  if (values.contains("help")) return print_help();
  const auto folders =
      values.contains("folder") ? values["folder"].as<std::vector<std::string>>() : std::vector<std::string>{"."};
  if (folders.size() > 1) throw UsageError({.what = "one folder at a time", .hint = "hortator doctor FOLDER"});

  const bool as_json = values.contains("json");
  auto findings = judge(doctor::look_at_libraries());
  if (!can_start(findings)) return report_alone(std::move(findings), folders.front(), as_json);
  return report_together(std::move(findings), folders.front(), as_json);
}

}  // namespace hortator::tools
