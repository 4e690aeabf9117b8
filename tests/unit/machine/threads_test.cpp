#include "machine/cpu/threads.hpp"

#include "core/environment/openmp.hpp"
#include "support/catch.hpp"

using namespace hortator;
using machine::CpuSet;
using machine::ThreadPlan;

namespace {

std::vector<ThreadPlan> plans(const std::vector<CpuSet>& sets) {
  std::vector<ThreadPlan> result;
  for (int rank = 0; rank < static_cast<int>(sets.size()); ++rank)
    result.push_back(machine::plan_threads(sets, rank, std::nullopt));
  return result;
}

CpuSet first(int count) {
  CpuSet set;
  for (int cpu = 0; cpu < count; ++cpu) set.push_back(cpu);
  return set;
}

}  // namespace

TEST_CASE("a rank bound to its own CPUs has a thread on each") {
  CHECK((plans({{0, 1, 2, 3}, {4, 5}, {6}}) == std::vector<ThreadPlan>{{4, 1, false}, {2, 1, false}, {1, 1, false}}));
}

TEST_CASE(
    "ranks that are not bound share the CPUs of their node: never more threads than CPUs, unless ranks are more") {
  for (int cpus = 1; cpus <= 16; ++cpus) {
    for (int ranks = 1; ranks <= 20; ++ranks) {
      const std::vector<CpuSet> sets(static_cast<std::size_t>(ranks), first(cpus));
      for (const auto& plan : plans(sets)) CHECK(plan == ThreadPlan{std::max(1, cpus / ranks), ranks, ranks > cpus});
    }
  }
}

TEST_CASE("CPUs that only some ranks may use are divided among these") {
  CHECK((plans({{0, 1, 2, 3}, {2, 3}}) == std::vector<ThreadPlan>{{3, 2, false}, {1, 2, false}}));
  CHECK((plans({{0}, {0}, {1, 2}}) == std::vector<ThreadPlan>{{1, 2, true}, {1, 2, true}, {2, 1, false}}));
  CHECK((plans({{0, 1, 2}, {0, 1, 2}, {0, 1, 2}}) == std::vector<ThreadPlan>(3, {1, 3, false})));
}

TEST_CASE("OMP_NUM_THREADS is used unchanged when OpenMP accepts it") {
  const auto asked = [](std::optional<std::string> value) {
    return core::asked_threads([value](const char*) { return value; });
  };
  CHECK(asked("6") == 6);
  CHECK(asked("4,2") == 4);
  for (const char* odd : {"", "0", "-1", "many", "3x", "99999999999"}) CHECK_FALSE(asked(odd).has_value());
  CHECK_FALSE(asked(std::nullopt).has_value());

  const std::vector<CpuSet> sets = {{0}, {0}};
  CHECK(machine::plan_threads(sets, 1, 6) == ThreadPlan{6, 2, true, true});
}

TEST_CASE("threads spin on CPUs of others exactly where ranks share CPUs and have more threads than their share") {
  for (int cpus = 1; cpus <= 8; ++cpus) {
    for (int ranks = 1; ranks <= 8; ++ranks) {
      for (int threads = 1; threads <= 9; ++threads) {
        const std::vector<CpuSet> sets(static_cast<std::size_t>(ranks), first(cpus));
        const bool expected = ranks > 1 && threads > 1 && threads * ranks > cpus;
        CHECK(machine::plan_threads(sets, ranks - 1, threads).spins_on_others == expected);
      }
    }
  }
  CHECK_FALSE(machine::plan_threads(std::vector<CpuSet>{{0}, {1}}, 0, 4).spins_on_others);
}

TEST_CASE("any of the variables of OpenMP's libraries is a choice how threads wait") {
  for (const std::string set : {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"}) {
    CHECK(core::has_wait_policy(
        [&](const char* name) { return name == set ? std::optional<std::string>("0") : std::nullopt; }));
  }
  CHECK_FALSE(core::has_wait_policy([](const char*) { return std::nullopt; }));
}
