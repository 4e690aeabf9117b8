#include "observe/progress/terminal_screen.hpp"

#include <fcntl.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <string>

#include "core/log.hpp"
#include "support/catch.hpp"

using namespace hortator;

namespace {

// The standard error of a child that runs `work` on a terminal with that many columns.
std::string seen_on_terminal(int columns, const std::function<void()>& work) {
  winsize size{};
  size.ws_row = 24;
  size.ws_col = static_cast<unsigned short>(columns);
  int master = -1;
  const pid_t child = forkpty(&master, nullptr, nullptr, &size);
  if (child == 0) {
    work();
    _exit(0);
  }
  std::string seen;
  std::array<char, 1024> buffer{};
  for (ssize_t got = 0; (got = read(master, buffer.data(), buffer.size())) > 0;)
    seen.append(buffer.data(), static_cast<std::size_t>(got));
  close(master);
  waitpid(child, nullptr, 0);
  return seen;
}

}  // namespace

TEST_CASE("the width of a terminal is found") {
  CHECK(seen_on_terminal(97, [] { dprintf(1, "%d", observe::terminal_columns().value_or(-1)); }) == "97");
  CHECK(seen_on_terminal(0, [] { dprintf(1, "%d", observe::terminal_columns().value_or(-1)); }) == "80");
  CHECK(seen_on_terminal(97, [] { dprintf(1, "%d", observe::TerminalScreen().columns()); }) == "96");
}

TEST_CASE("says on standard output what through_mpirun.sh looks for", "[.columns]") {
  dprintf(1, "columns=%d\n", observe::terminal_columns().value_or(0));
}

TEST_CASE("a file or a pipe is not a terminal, even if the parent shell uses one") {
  const auto seen = seen_on_terminal(97, [] {
    const int file = open("stderr.txt", O_CREAT | O_TRUNC | O_WRONLY, 0600);
    dup2(file, STDERR_FILENO);
    if (fork() == 0) {  // its parent, like a shell, uses the terminal except for standard error
      dprintf(1, "%s", observe::terminal_columns() ? "terminal" : "file");
      _exit(0);
    }
    wait(nullptr);
  });
  CHECK(seen == "file");
}

TEST_CASE("only launchers that forward standard error are recognised") {
  for (const auto* name : {"mpirun", "mpiexec", "orterun", "prterun", "mpiexec.hydra"}) CHECK(observe::is_mpirun(name));
  for (const auto* name : {"bash", "slurmstepd", "orted", "", "mpirun2"}) CHECK(!observe::is_mpirun(name));
}

TEST_CASE("lines of the log and of the program appear above the bar") {
  const auto seen = seen_on_terminal(80, [] {
    observe::TerminalScreen screen;
    screen.show("50%");
    log::write_warning("hot");
    screen.show("60%");
    log::print("result");
    screen.show("70%");
    screen.keep();
    log::print("after");
  });
  const std::string clear = "\r\x1b[K";
  CHECK(seen ==
        clear + "50%" + clear + "warning: hot\r\n" + clear + "60%" + clear + "result\r\n" + clear + "70%\r\nafter\r\n");
}
