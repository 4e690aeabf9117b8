#include "core/signal_name.hpp"

#include <array>
#include <csignal>
#include <cstring>
#include <utility>

namespace hortator::core {

std::string signal_name(int signal) {
  static constexpr std::array<std::pair<int, const char*>, 13> names = {{{SIGHUP, "SIGHUP"},
                                                                         {SIGINT, "SIGINT"},
                                                                         {SIGQUIT, "SIGQUIT"},
                                                                         {SIGILL, "SIGILL"},
                                                                         {SIGTRAP, "SIGTRAP"},
                                                                         {SIGABRT, "SIGABRT"},
                                                                         {SIGBUS, "SIGBUS"},
                                                                         {SIGFPE, "SIGFPE"},
                                                                         {SIGKILL, "SIGKILL"},
                                                                         {SIGSEGV, "SIGSEGV"},
                                                                         {SIGPIPE, "SIGPIPE"},
                                                                         {SIGTERM, "SIGTERM"},
                                                                         {SIGXCPU, "SIGXCPU"}}};
  for (const auto& [number, name] : names) {
    if (number == signal) return name;
  }
  return strsignal(signal);
}

}  // namespace hortator::core
