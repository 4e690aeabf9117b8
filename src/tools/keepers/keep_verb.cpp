#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "tools/keepers/kept_folder.hpp"
#include "tools/verbs.hpp"

namespace hortator::tools {
namespace {

// Ctrl-C and the end of a terminal reach the launcher, which decides.
void outlive_the_terminal() {
  setsid();
  for (const int signal : {SIGINT, SIGHUP, SIGPIPE, SIGUSR1, SIGUSR2}) std::signal(signal, SIG_IGN);
  struct sigaction ends {};
  ends.sa_handler = [](int) {};  // without SA_RESTART: ends the read
  sigaction(SIGTERM, &ends, nullptr);
}

// The launcher never writes: this is the end of its process, or of the connection to it.
void wait_for_end_of_input() {
  std::array<char, 64> ignored{};
  while (read(STDIN_FILENO, ignored.data(), ignored.size()) > 0) continue;
}

}  // namespace

// Started by `hortator launch` on each node: keeps FOLDER until its standard input ends.
int keep_verb(const Arguments& arguments) {
  if (arguments.size() != 1) throw UsageError({.what = "usage: hortator keep FOLDER"});
  outlive_the_terminal();
  const KeptFolder kept(arguments.front());
  const auto ready = text::concat(keeper_is_ready, '\n');
  if (write(STDOUT_FILENO, ready.data(), ready.size()) > 0) wait_for_end_of_input();
  kept.remove();
  return 0;
}

}  // namespace hortator::tools
