#include "core/process.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "support/catch.hpp"

using namespace hortator;

TEST_CASE(
    "a process has ended when it is gone, also before its parent has noticed; one of another machine is unknown") {
  const auto own = core::process_id();
  REQUIRE(!own.empty());
  CHECK_FALSE(core::has_ended(own));

  std::array<int, 2> ends{};
  REQUIRE(pipe(ends.data()) == 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto id = core::process_id();
    [[maybe_unused]] const auto written = write(ends[1], id.data(), id.size());
    pause();
  }
  std::array<char, 256> text{};
  const auto count = read(ends[0], text.data(), text.size());
  REQUIRE(count > 0);
  const std::string id(text.data(), static_cast<std::size_t>(count));
  CHECK_FALSE(core::has_ended(id));
  kill(child, SIGKILL);
  siginfo_t info{};
  REQUIRE(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) == 0);
  CHECK(core::has_ended(id));
  REQUIRE(waitpid(child, nullptr, 0) == child);
  for (const int end : ends) close(end);
  CHECK(core::has_ended(id));

  CHECK_FALSE(core::has_ended("x" + id));
  CHECK_FALSE(core::has_ended(""));
  CHECK(core::has_ended(own + "1"));  // the number was taken by a later process
}

TEST_CASE("processes are read from /proc, whatever they are called") {
  const auto facts = core::parse_stat("7 (a) T 1 (b)) T 1 7 7 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 4711 2 3 4 5\n");
  REQUIRE(facts);
  CHECK(facts->state == 'T');
  CHECK(facts->start == 4711);
  CHECK_FALSE(core::parse_stat(""));
  CHECK_FALSE(core::parse_stat("7 (a)"));
}
