// Runs that would share a folder, and with it their checkpoints.
#include "border_settings.hpp"
#include "c_run.hpp"
#include "support/catch.hpp"

using namespace hortator::test;

namespace {

hortator_status begin_on(MPI_Comm comm, const std::string& file, hortator_run** run) {
  return hortator_begin(MPI_Comm_c2f(comm), file.c_str(), run);
}

/// Another file of settings with the run folder of `name`.
std::string settings_with_folder_of(const std::string& name) {
  const auto file = name + "_too.yaml";
  if (world_rank() == 0) std::ofstream(file) << "cpu: true\nrun_dir: ./run_" << name << "/\n" << border_settings;
  MPI_Barrier(MPI_COMM_WORLD);
  return file;
}

}  // namespace

TEST_CASE("a second run of a process in the folder of the first is refused on all ranks", "[simulation]") {
  const auto file = settings_file("one_folder", border_settings);
  const auto other = settings_with_folder_of("one_folder");
  CRun first(file);
  REQUIRE(first.status() == HORTATOR_OK);
  hortator_run* second = nullptr;
  const auto status = begin_on(MPI_COMM_WORLD, other, &second);
  CHECK(status == HORTATOR_USAGE);
  CHECK(same_on_all(status));
  CHECK(second == nullptr);
  CHECK(
      error_has("The run of one_folder_too.yaml and the run of one_folder.yaml, which has not ended, have one folder"));
  CHECK(hortator_save(first, 0, nullptr) == HORTATOR_OK);  // which is not disturbed
  first.end();
  REQUIRE(begin_on(MPI_COMM_WORLD, other, &second) == HORTATOR_OK);
  CHECK(hortator_end(second, nullptr) == HORTATOR_OK);
}

TEST_CASE("runs of different communicators in one folder: one of them begins, the others are refused", "[simulation]") {
  const auto file = settings_file("parts", border_settings);
  hortator_run* run = nullptr;
  const auto status = begin_on(MPI_COMM_SELF, file, &run);
  CHECK((status == HORTATOR_OK) == (run != nullptr));
  int begun = run != nullptr ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &begun, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);  // before any of them ends
  CHECK(begun == 1);
  if (run == nullptr) {
    CHECK(status == HORTATOR_USAGE);
    CHECK(error_has("Another run of this job uses the folder "));
    CHECK(error_has("the run of parts.yaml"));
  } else {
    CHECK(hortator_end(run, nullptr) == HORTATOR_OK);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const CRun all(file);
  CHECK(all.status() == HORTATOR_OK);
}

TEST_CASE("runs of different communicators with folders of their own go on side by side", "[simulation]") {
  std::string mine;
  for (int rank = 0; rank < world_size(); ++rank) {
    const auto file = settings_file("side" + std::to_string(rank), border_settings);
    if (rank == world_rank()) mine = file;
  }
  hortator_run* run = nullptr;
  REQUIRE(begin_on(MPI_COMM_SELF, mine, &run) == HORTATOR_OK);
  CHECK(hortator_save(run, 0, nullptr) == HORTATOR_OK);
  CHECK(hortator_end(run, nullptr) == HORTATOR_OK);
}

TEST_CASE("without run_dir in its settings, a run has the folder of HORTATOR_RUN_DIR", "[simulation]") {
  const std::filesystem::path folder = "run_asked_for";
  const std::string file = "asked.yaml";
  if (world_rank() == 0) {
    std::filesystem::remove_all(folder);
    std::ofstream(file) << "cpu: true\n" << border_settings;
    setenv("HORTATOR_RUN_DIR", folder.c_str(), 1);  // rank 0's counts
  }
  MPI_Barrier(MPI_COMM_WORLD);
  hortator_run* run = nullptr;
  REQUIRE(begin_on(MPI_COMM_WORLD, file, &run) == HORTATOR_OK);
  unsetenv("HORTATOR_RUN_DIR");
  CHECK(hortator_save(run, 0, nullptr) == HORTATOR_OK);
  CHECK(std::filesystem::exists(folder / "checkpoint"));
  CHECK(hortator_end(run, nullptr) == HORTATOR_OK);
}
