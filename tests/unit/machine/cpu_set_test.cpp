#include "machine/cpu/cpu_set.hpp"

#include <sched.h>

#include <future>
#include <thread>

#include "support/catch.hpp"

using namespace hortator;
using machine::CpuSet;

TEST_CASE("CPU sets are written as ranges and read back") {
  const std::vector<std::pair<CpuSet, std::string>> cases = {{{}, ""},
                                                             {{0}, "0"},
                                                             {{0, 1, 2, 3, 8}, "0-3,8"},
                                                             {{5, 7}, "5,7"},
                                                             {{5, 6}, "5-6"},
                                                             {{1, 3, 4, 5, 1023}, "1,3-5,1023"},
                                                             {{0, 2, 4}, "0,2,4"}};
  for (const auto& [set, text] : cases) {
    CHECK(machine::to_ranges(set) == text);
    CHECK(machine::from_ranges(text) == set);
  }
  CHECK_THROWS_WITH(machine::from_ranges("0-x"), ContainsSubstring("Expected a CPU number, got 'x'"));
}

TEST_CASE("every set of eight CPUs survives a round trip") {
  for (int bits = 0; bits < 256; ++bits) {
    CpuSet set;
    for (int cpu = 0; cpu < 8; ++cpu) {
      if ((bits >> cpu) & 1) set.push_back(cpu);
    }
    CHECK(machine::from_ranges(machine::to_ranges(set)) == set);
  }
}

TEST_CASE("a process reports the CPUs that it is bound to") {
  cpu_set_t before;
  CPU_ZERO(&before);
  if (sched_getaffinity(0, sizeof before, &before) != 0) return;  // more CPUs than a fixed mask holds
  const auto all = machine::own_cpu_set();
  REQUIRE_FALSE(all.empty());
  CHECK(static_cast<int>(all.size()) == CPU_COUNT(&before));

  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(all.back()), &one);
  REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
  const auto bound = machine::own_cpu_set();
  sched_setaffinity(0, sizeof before, &before);
  CHECK(bound == CpuSet{all.back()});
}

TEST_CASE("a process is bound with all threads except those bound to other CPUs") {
  cpu_set_t before;
  CPU_ZERO(&before);
  if (sched_getaffinity(0, sizeof before, &before) != 0) return;  // more CPUs than a fixed mask holds
  const auto all = machine::own_cpu_set();
  if (all.size() < 2) return;
  const CpuSet last{all.back()};
  std::promise<void> bound;
  auto proceed = bound.get_future().share();
  auto follower = std::async(std::launch::async, [&] { return proceed.wait(), machine::own_cpu_set(); });
  std::promise<void> elsewhere;
  auto loner = std::async(std::launch::async, [&] {
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(static_cast<std::size_t>(all.front()), &first);
    sched_setaffinity(0, sizeof first, &first);
    elsewhere.set_value();
    return proceed.wait(), machine::own_cpu_set();
  });
  elsewhere.get_future().wait();
  CHECK(machine::bind_own_threads(all, last));
  bound.set_value();
  CHECK(machine::own_cpu_set() == last);
  CHECK(follower.get() == last);
  CHECK(loner.get() == CpuSet{all.front()});
  CHECK(machine::bind_own_threads(last, all));
  CHECK(machine::own_cpu_set() == all);
}
