#pragma once

#include <filesystem>
#include <functional>
#include <hortator/accelerator.hpp>
#include <string>
#include <vector>

#include "mpi/communicator.hpp"

/// The checks of `hortator test`: the installation, on the nodes where it runs.
namespace hortator::tools::installation {

struct Check {
  std::string name;
  /// Runs on all ranks. Throws on all of them if something is wrong, otherwise returns details for the table.
  std::function<std::string()> run;
};

struct CheckOutcome {
  std::string name;
  bool has_passed = false;
  double seconds = 0;
  std::string details = "";
};

/// `folder` is an existing empty folder on the file system to check.
std::vector<Check> checks(Accelerator& accelerator, const std::filesystem::path& folder);

/// Runs one check; a failure on any rank is a failure on all. @collective
CheckOutcome run_check(const mpi::Communicator& comm, const Check& check);

std::string table(const std::vector<CheckOutcome>& outcomes);
/// The same as one JSON object.
std::string to_json(const std::vector<CheckOutcome>& outcomes);

/// Each compares with the known result and throws on a difference. @collective
std::string check_ranks(Accelerator& accelerator);
std::vector<Check> checks_of_back_ends(Accelerator& accelerator);
std::string check_checkpoint(Accelerator& accelerator, const std::filesystem::path& folder, CheckpointWriter writer);
std::string check_loader(Accelerator& accelerator);
std::string check_paging(const std::filesystem::path& folder);
std::string check_training(Accelerator& accelerator);

/// Throws on all ranks with the `problem` of the first rank where `is_right` is false. @collective
void require_on_all_ranks(const mpi::Communicator& comm, bool is_right, const std::string& problem);

}  // namespace hortator::tools::installation
