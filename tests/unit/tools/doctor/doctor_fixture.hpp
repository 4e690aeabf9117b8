#pragma once

#include <algorithm>
#include <string>

#include "support/catch.hpp"
#include "tools/doctor/cards.hpp"
#include "tools/doctor/finding.hpp"
#include "tools/doctor/folder.hpp"
#include "tools/doctor/libraries.hpp"
#include "tools/doctor/machine.hpp"
#include "tools/doctor/ranks.hpp"

/// Facts of healthy machines, and checks of findings.
namespace hortator::test {

using namespace tools::doctor;

inline constexpr std::uint64_t mib = std::uint64_t{1} << 20;
inline constexpr std::uint64_t gib = std::uint64_t{1} << 30;

inline MachineFacts good_machine() {
  return {.kernel = "6.1.0-13-amd64",
          .local_ranks = 4,
          .free_shared_memory = 8 * gib,
          .limits = {.open_files = 1024, .processes = 60000, .stack = 8 * mib},
          .memory = 64 * gib,
          .cpus = 16};
}

inline LibraryFacts good_libraries() {
  return {.libtorch_built = "2.15.0",
          .libtorch_loaded = "2.15.0",
          .mpi_built = "Open MPI v4.1.4",
          .mpi_loaded = "Open MPI v4.1.4",
          .mpi_files = {"/usr/lib/libmpi.so.40"},
          .mpirun = "mpirun (Open MPI) 4.1.4",
          .hdf5_built = "HDF5 1.10.8",
          .hdf5_loaded = {.version = "HDF5 1.10.8", .file = "/usr/lib/libhdf5.so.103"}};
}

inline DeviceFacts good_devices() {
  return {.is_built = true, .files = 4, .openable = 4, .visible = 4, .distinct = 4, .local_ranks = 4};
}

inline FabricFacts good_fabric() { return {.devices = {"mlx5_0"}, .mpi_supports_fabrics = true, .has_nccl = true}; }

/// The only finding of that check; fails if there are others.
template <typename Facts>
Finding finding(const Facts& facts, const std::string& check) {
  Findings found = judge(facts);
  std::erase_if(found, [&](const Finding& one) { return one.check != check; });
  REQUIRE(found.size() == 1);
  return found.front();
}

template <typename Facts>
void expect_ok(const Facts& facts) {
  for (const auto& one : judge(facts)) {
    INFO(one.check << ": " << one.message);
    CHECK(one.severity == Severity::ok);
    CHECK(one.remedy.empty());
  }
}

template <typename Facts>
void expect_finding(const Facts& facts, const std::string& check, Severity severity, const std::string& message,
                    const std::string& remedy) {
  const auto result = finding(facts, check);
  CHECK(result.severity == severity);
  CHECK_THAT(result.message, ContainsSubstring(message));
  CHECK_THAT(result.remedy, ContainsSubstring(remedy));
}

}  // namespace hortator::test
