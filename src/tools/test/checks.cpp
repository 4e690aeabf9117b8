#include "tools/test/checks.hpp"

#include <algorithm>
#include <chrono>
#include <hortator/error.hpp>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"
#include "runtime/world.hpp"

namespace hortator::tools::installation {

std::vector<Check> checks(Accelerator& accelerator, const std::filesystem::path& folder) {
  std::vector<Check> all = {{"ranks", [&] { return check_ranks(accelerator); }}};
  for (auto& check : checks_of_back_ends(accelerator)) all.push_back(std::move(check));
  for (const auto& [name, writer] :
       {std::pair("checkpoint", CheckpointWriter::direct), {"checkpoint by MPI-IO", CheckpointWriter::mpio}}) {
    all.push_back(
        {name, [&accelerator, folder, writer = writer] { return check_checkpoint(accelerator, folder, writer); }});
  }
  all.push_back({"loader", [&] { return check_loader(accelerator); }});
  all.push_back({"paging", [folder] { return check_paging(folder); }});
  all.push_back({"training", [&] { return check_training(accelerator); }});
  return all;
}

void require_on_all_ranks(const mpi::Communicator& comm, bool is_right, const std::string& problem) {
  mpi::agree(comm, {.failed = !is_right, .problem = problem});
}

CheckOutcome run_check(const mpi::Communicator& comm, const Check& check) {
  CheckOutcome outcome{.name = check.name};
  const auto begin = std::chrono::steady_clock::now();
  try {
    mpi::all_or_none(comm, [&] { outcome.details = check.run(); });
    outcome.has_passed = true;
  } catch (const std::exception& error) {
    outcome.details = error.what();
  }
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return outcome;
}

std::string table(const std::vector<CheckOutcome>& outcomes) {
  std::size_t width = 0;
  for (const auto& outcome : outcomes) width = std::max(width, outcome.name.size());
  std::ostringstream out;
  for (const auto& outcome : outcomes) {
    out << (outcome.has_passed ? "passed  " : "FAILED  ") << std::left << std::setw(static_cast<int>(width) + 2)
        << outcome.name << std::right << std::setw(7) << std::fixed << std::setprecision(2) << outcome.seconds << " s  "
        << outcome.details << '\n';
  }
  const auto failed = std::ranges::count_if(outcomes, [](const CheckOutcome& outcome) { return !outcome.has_passed; });
  out << outcomes.size() - static_cast<std::size_t>(failed) << " of "
      << text::count(static_cast<long long>(outcomes.size()), "check") << " passed\n";
  return std::move(out).str();
}

std::string to_json(const std::vector<CheckOutcome>& outcomes) {
  nlohmann::ordered_json json = {
      {"schema_version", 1}, {"has_passed", true}, {"checks", nlohmann::ordered_json::array()}};
  for (const auto& outcome : outcomes) {
    if (!outcome.has_passed) json["has_passed"] = false;
    json["checks"].push_back({{"name", outcome.name},
                              {"has_passed", outcome.has_passed},
                              {"seconds", outcome.seconds},
                              {"details", outcome.details}});
  }
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string check_ranks(Accelerator& accelerator) {
  const auto& world = accelerator.world();
  const auto& topology = world.topology();
  const auto sum = mpi::all_reduce(world.comm(), static_cast<std::int64_t>(topology.rank), mpi::Op::sum);
  const auto expected = static_cast<std::int64_t>(topology.size) * (topology.size - 1) / 2;
  require_on_all_ranks(world.comm(), sum == expected,
                       text::concat("The sum of the rank numbers is ", sum, ", expected ", expected));
  const int leaders = mpi::all_reduce(world.comm(), topology.is_leader() ? 1 : 0, mpi::Op::sum);
  require_on_all_ranks(world.comm(), leaders == topology.nodes,
                       text::concat("Found ", leaders, " first ranks on ", topology.nodes, " nodes"));
  const int max_ranks = mpi::all_reduce(world.comm(), topology.local_size, mpi::Op::max);
  const int min_ranks = mpi::all_reduce(world.comm(), topology.local_size, mpi::Op::min);
  const auto each = max_ranks == min_ranks ? std::to_string(max_ranks) : text::concat(min_ranks, " to ", max_ranks);
  return text::concat(text::count(topology.size, "rank"), ", ", text::count(topology.nodes, "node"), ", ", each,
                      " per node, ", accelerator.device());
}

}  // namespace hortator::tools::installation
