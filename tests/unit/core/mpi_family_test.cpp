#include "core/environment/mpi_family.hpp"

#include <hortator/error.hpp>
#include <map>
#include <string>

#include "support/catch.hpp"

namespace hortator::core {
namespace {

std::string family(const std::map<std::string, std::string>& set) {
  return mpi_family_of_launcher([&](const char* name) -> std::optional<std::string> {
    const auto found = set.find(name);
    return found == set.end() ? std::nullopt : std::optional(found->second);
  });
}

TEST_CASE("the launcher's variables tell its MPI") {
  CHECK(family({{"OMPI_COMM_WORLD_RANK", "0"}, {"PMIX_RANK", "0"}}) == "openmpi");
  CHECK(family({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}) == "mpich");
  CHECK(family({{"PALS_RANKID", "0"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}) == "mpich");
  CHECK(family({{"MV2_COMM_WORLD_RANK", "3"}}) == "mpich");
  CHECK(family({}).empty());
  CHECK(family({{"PMIX_RANK", "0"}}).empty());
  CHECK(family({{"PMI_RANK", "1"}}).empty());
}

TEST_CASE("under srun only the user can tell the MPI") {
  const std::map<std::string, std::string> step = {
      {"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "1"}, {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}};
  CHECK(family(step).empty());
  auto told = step;
  told["HORTATOR_MPI_FAMILY"] = "mpich";
  CHECK(family(told) == "mpich");
  CHECK(family({{"HORTATOR_MPI_FAMILY", "openmpi"}, {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}) == "openmpi");
  CHECK_THROWS_WITH(family({{"HORTATOR_MPI_FAMILY", "lam"}}),
                    ContainsSubstring("expected openmpi or mpich, got 'lam'"));
}

}  // namespace
}  // namespace hortator::core
