#include <algorithm>
#include <hortator/error.hpp>
#include <iostream>

#include "mpi/collectives.hpp"
#include "mpi/environment.hpp"
#include "runtime/identity/launcher.hpp"
#include "runtime/identity/mpi_use.hpp"
#include "tools/doctor/bits.hpp"
#include "tools/doctor/cards.hpp"
#include "tools/doctor/finding.hpp"
#include "tools/doctor/folder.hpp"
#include "tools/doctor/libraries.hpp"
#include "tools/doctor/machine.hpp"
#include "tools/doctor/ranks.hpp"
#include "tools/verbs.hpp"

namespace hortator::tools {
namespace {

using doctor::Findings;

Options doctor_options() {
  Options options;
  options.named.add_options()("json", "print one JSON object instead of text")("help,h", "print this help");
  return options;
}

int print_doctor_help() {
  std::cout
      << "usage: hortator doctor [--json] [FOLDER]\n\n"
         "Finds causes of slow, hanging or failing runs on this machine, and prints how to fix them. FOLDER (default:\n"
         "this one) is where checkpoints will be saved. On several ranks it compares the bits of about 20 kernels\n"
         "(products, convolution, norms, softmax, attention, functions, sums, in float32 and bfloat16) on fixed\n"
         "inputs, and names the kernels and the nodes that differ, with the features of their processors.\n\n"
         "  hortator doctor /scratch/me\n"
         "  hortator launch --nodes 2 --ranks-per-node 4 hortator doctor    (on several nodes)\n\n"
         "exit code: 0 no error, perhaps notes and warnings; 1 an error; 2 wrong usage\n\n"
      << doctor_options().named;
  return 0;
}

void add(Findings& all, Findings added) {
  for (auto& finding : added) all.push_back(std::move(finding));
}

// Ranks that were started as separate one-rank jobs cannot see it themselves: compares with the launcher's number.
Findings judge_start(const mpi::Communicator& world) {
  try {
    runtime::check_together(runtime::launcher(), world.size(), mpi::library_version());
    return {};
  } catch (const std::exception& error) {
    return {{"start", doctor::Severity::error, error.what(),
             "load the MPI module that Hortator was built with; with Slurm, srun --mpi=pmix"}};
  }
}

// The checks that need all ranks. @collective
Findings examine_ranks(const mpi::Communicator& world, const std::string& folder) {
  const auto node = world.node();
  Findings findings = judge_start(world);
  add(findings, judge(doctor::inspect_machine(node.size())));
  add(findings, judge(doctor::inspect_cards()));
  if (node.rank() == 0) add(findings, judge(doctor::inspect_folder(folder)));
  add(findings, judge(doctor::inspect_devices(node)));
  add(findings, judge(doctor::inspect_fabric()));
  add(findings, judge(doctor::inspect_binding(node)));
  const auto clocks = judge(doctor::inspect_clocks(world));
  if (world.rank() == 0) add(findings, clocks);
  add(findings, judge(doctor::inspect_bits(world)));
  return findings;
}

void print(const Findings& findings, int ranks, bool as_json) {
  std::cout << (as_json ? to_json(findings, ranks).dump() + "\n" : to_text(findings, ranks));
}

bool can_start(const Findings& findings) {
  return std::none_of(findings.begin(), findings.end(), [](const doctor::Finding& finding) {
    const bool is_needed = finding.check == "LibTorch" || finding.check == "MPI" || finding.check == "HDF5";
    return is_needed && finding.severity == doctor::Severity::error;
  });
}

// MPI cannot be initialised with incompatible libraries, so that this rank reports what it sees on its own.
int report_one_rank(Findings findings, const std::string& folder, bool as_json) {
  add(findings, judge(doctor::inspect_machine(1)));
  add(findings, judge(doctor::inspect_cards()));
  add(findings, judge(doctor::inspect_folder(folder)));
  add(findings, judge(doctor::inspect_fabric()));
  print(findings, 1, as_json);
  return 1;
}

/// Does not use hortator::run(), so that no run folder is created. @collective
int report_all_ranks(Findings findings, const std::string& folder, bool as_json) {
  runtime::start_mpi();
  const runtime::MpiUse mpi_use;
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
  const auto values = parse(arguments, with_text(doctor_options(), "folder"));
  if (values.contains("help")) return print_doctor_help();
  const auto folders =
      values.contains("folder") ? values["folder"].as<std::vector<std::string>>() : std::vector<std::string>{"."};
  if (folders.size() > 1) throw UsageError({.what = "Expected one folder", .hint = "hortator doctor FOLDER"});

  const bool as_json = values.contains("json");
  auto findings = judge(doctor::inspect_libraries());
  if (!can_start(findings)) return report_one_rank(std::move(findings), folders.front(), as_json);
  return report_all_ranks(std::move(findings), folders.front(), as_json);
}

}  // namespace hortator::tools
