#include "launch/waiting.hpp"

#include "support/catch.hpp"

using namespace hortator::launching;

namespace {

using Text = std::optional<std::string>;

const Text sleeping = "OMP_WAIT_POLICY=passive";
const Text brief = "GOMP_SPINCOUNT=10000";

}  // namespace

TEST_CASE("OpenMP threads sleep exactly where they outnumber the CPUs, and spin briefly on a machine that others use") {
  for (int cpus = 1; cpus <= 12; ++cpus) {
    for (int ranks = 1; ranks <= 14; ++ranks) {
      const LaunchEnvironment machine = {.cpus = cpus};
      CAPTURE(cpus, ranks);
      // Without a request, a rank has a thread for each CPU of its share: never more threads than CPUs.
      CHECK(thread_waiting({.ranks = ranks}, machine) == (2 * ranks <= cpus ? brief : Text()));
      for (int threads = 1; threads <= 14; ++threads) {
        const auto expected = threads == 1 ? Text() : threads * ranks > cpus ? sleeping : brief;
        CHECK(thread_waiting({.ranks = ranks, .threads = threads}, machine) == expected);
        CHECK(thread_waiting({.ranks = ranks}, {.cpus = cpus, .asked_threads = threads}) == expected);
      }
    }
  }
}

TEST_CASE("--threads outranks OMP_NUM_THREADS, and no number of ranks overflows") {
  CHECK(thread_waiting({.ranks = 2, .threads = 2}, {.cpus = 4, .asked_threads = 4}) == brief);
  CHECK(thread_waiting({.ranks = 1 << 30, .threads = 1 << 16}, {.cpus = 4}) == sleeping);
}

TEST_CASE("OpenMP threads spin as they like on CPUs of a job or a host file, and as the user has chosen") {
  for (const int threads : {1, 4, 64}) {
    const LaunchRequest request = {.ranks = 2, .threads = threads};
    CHECK_FALSE(thread_waiting(request, {.in_slurm = true, .cpus = 8}));
    CHECK_FALSE(thread_waiting(request, {.in_other_batch_job = true, .cpus = 8}));
    CHECK_FALSE(thread_waiting(request, {.cpus = 8, .has_wait_policy = true}));
    CHECK_FALSE(thread_waiting({.ranks = 2, .threads = threads, .hostfile = "hosts"}, {.cpus = 8}));
  }
}
