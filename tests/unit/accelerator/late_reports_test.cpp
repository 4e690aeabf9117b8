// Log lines of a run, at its start and later: each appears once, printed by the rank in charge.
#include <unistd.h>

#include <cstdlib>
#include <optional>

#include "accelerator/training/training.hpp"
#include "core/environment/openmp.hpp"
#include "fixtures.hpp"
#include "runtime/world.hpp"
#include "support/catch.hpp"
#include "support/written.hpp"

using namespace hortator;

namespace {

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

auto loader_of(std::int64_t samples, std::int64_t batch_size) {
  return data_loader(test::Rows{samples}, {.batch_size = batch_size});
}

}  // namespace

// The first test, because a process prints this warning only once.
TEST_CASE("rank 0 warns once for the whole job if ranks share CPUs") {
  bool is_crowded = false;
  int rank = 0;
  const auto output = test::written_to(STDERR_FILENO, [&] {
    for (int round = 0; round < 2; ++round) {
      const State state;
      rank = state.process_index();
      is_crowded = state.world().threads().is_crowded;
    }
  });
  CHECK(count(output, "have less than one CPU of their own") == (is_crowded && rank == 0 ? 1 : 0));
}

TEST_CASE("rank 0 warns once for the whole job if threads spin on CPUs that other ranks need") {
  const char* asked = std::getenv("OMP_NUM_THREADS");
  const std::optional<std::string> before = asked == nullptr ? std::nullopt : std::optional<std::string>(asked);
  setenv("OMP_NUM_THREADS", "4096", 1);
  bool spins = false;
  int rank = 0;
  const auto output = test::written_to(STDERR_FILENO, [&] {
    for (int round = 0; round < 2; ++round) {
      const State state;
      rank = state.process_index();
      spins = state.world().threads().spins_on_others && !core::has_wait_policy(core::process_variables());
    }
  });
  before ? setenv("OMP_NUM_THREADS", before->c_str(), 1) : unsetenv("OMP_NUM_THREADS");
  CHECK(count(output, "have more threads than CPUs") == (spins && rank == 0 ? 1 : 0));
}

TEST_CASE("the first prepare with a loader prints the effective batch once, on the main process") {
  Accelerator accelerator;
  const auto output = test::written_to(STDERR_FILENO, [&] {
    accelerator.prepare(loader_of(1000, 4), loader_of(30, 2));
    accelerator.prepare(loader_of(1000, 8));
  });
  const int n = accelerator.num_processes();
  const bool is_main = accelerator.is_main_process();
  CHECK(count(output, "effective batch") == (is_main ? 1 : 0));
  CHECK(count(output, text::concat(4 * n, " of 1000 samples; ", 2 * n, " of 30 samples")) == (is_main ? 1 : 0));
}

TEST_CASE("the main process prints progress lines where there is no terminal") {
  Accelerator accelerator;
  const auto output = test::written_to(STDERR_FILENO, [&] {
    for (auto& batch : accelerator.progress(loader_of(8, 2), "these batches")) static_cast<void>(batch);
  });
  CHECK((count(output, "these batches") > 0) == accelerator.is_main_process());
}
