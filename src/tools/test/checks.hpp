#pragma once

#include <filesystem>
#include <functional>
#include <hortator/accelerator.hpp>
#include <string>
#include <vector>

#include "mpi/communicator.hpp"

/// What `hortator test` tries out: the installation itself, on the nodes where it runs.
namespace hortator::tools::installation {

struct Check {
  std::string name;
  /// What all ranks do together. Throws on all of them when something is wrong; otherwise returns what is worth saying.
  std::function<std::string()> run;
};

struct Outcome {
  std::string name;
  bool has_passed = false;
  double seconds = 0;
  std::string says = "";
};

/// `folder` is the checks' own, there already, and is on the file system that is asked about.
std::vector<Check> checks(Accelerator& accelerator, const std::filesystem::path& folder);

/// A failure on any rank is one on all. @collective
Outcome carry_out(const mpi::Communicator& comm, const Check& check);

std::string table(const std::vector<Outcome>& outcomes);

/// Each compares with what must come out, and throws where it does not. @collective
std::string check_ranks(Accelerator& accelerator);
std::vector<Check> checks_of_back_ends(Accelerator& accelerator);
std::string check_checkpoint(Accelerator& accelerator, const std::filesystem::path& folder, CheckpointWriter writer);
std::string check_loader(Accelerator& accelerator);
std::string check_paging(const std::filesystem::path& folder);
std::string check_training(Accelerator& accelerator);

/// Throws on all ranks `what` of the first rank where it is not as it must be. @collective
void require_everywhere(const mpi::Communicator& comm, bool is_right, const std::string& what);

}  // namespace hortator::tools::installation
