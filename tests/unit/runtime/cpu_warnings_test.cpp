#include "runtime/environment/cpu_warnings.hpp"

#include <unistd.h>

#include <algorithm>
#include <limits>

#include "support/catch.hpp"

using namespace hortator;
using machine::CpuSet;
using runtime::cpu_warning;

namespace {

CpuSet first_cpus(int count) {
  CpuSet set;
  for (int cpu = 0; cpu < count; ++cpu) set.push_back(cpu);
  return set;
}

}  // namespace

TEST_CASE("a rank with more threads than CPUs is reported") {
  for (int cpus = 1; cpus <= 8; ++cpus) {
    for (int threads = 1; threads <= 9; ++threads) {
      const auto own = first_cpus(cpus);
      const auto warning = cpu_warning({.threads = threads, .own = own, .of_node = {own}});
      CHECK(warning.empty() == (threads <= std::max(cpus, 1)));
    }
  }
  CHECK_THAT(cpu_warning({.threads = 8, .own = {3}}), ContainsSubstring("8 threads on 1 CPU, where they take turns"));
}

TEST_CASE("ranks that mpirun binds to less than half of its CPUs are reported") {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (int all = ranks; all <= 24; ++all) {
      std::vector<CpuSet> bound;
      for (int rank = 0; rank < ranks; ++rank) bound.push_back({rank});
      const runtime::CpuUse use{.own = {0}, .of_node = bound, .of_launcher = first_cpus(all)};
      CHECK(cpu_warning(use).empty() == (2 * ranks >= all));
    }
  }
  CHECK(cpu_warning({.own = {0}, .of_node = {{0}}}).empty());  // started by something else
  CHECK_THAT(cpu_warning({.own = {0}, .of_node = {{0}, {1}, {0, 1}}, .of_launcher = first_cpus(16)}),
             ContainsSubstring("to 2 of its 16 CPUs") && ContainsSubstring("--bind-to none"));
}

TEST_CASE("the CPUs of another process are known") {
  CHECK(machine::cpu_set_of(getpid()) == machine::own_cpu_set());
  CHECK_FALSE(machine::cpu_set_of(std::numeric_limits<int>::max()).has_value());
}
