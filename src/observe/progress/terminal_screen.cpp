#include "observe/progress/terminal_screen.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "core/log.hpp"

namespace hortator::observe {
namespace {

constexpr int default_columns = 80;

std::optional<int> columns_of(int descriptor) {
  if (isatty(descriptor) == 0) return std::nullopt;
  winsize size{};
  const bool is_known = ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? size.ws_col : default_columns;
}

std::string process_file(pid_t process, const std::string& name) {
  return "/proc/" + std::to_string(process) + "/" + name;
}

std::string process_name(pid_t process) {
  std::string name;
  std::getline(std::ifstream(process_file(process, "comm")), name);
  return name;
}

// The line is "PID (NAME) STATE PARENT ..."; the name may contain spaces and brackets.
pid_t parent_of(pid_t process) {
  std::string line;
  std::getline(std::ifstream(process_file(process, "stat")), line);
  const auto end = line.rfind(") ");
  return end == std::string::npos || end + 4 >= line.size() ? 0 : static_cast<pid_t>(std::atoi(line.c_str() + end + 4));
}

// MPICH starts ranks through a proxy, one per machine.
pid_t launcher_of_this() {
  const auto parent = getppid();
  return process_name(parent) == "hydra_pmi_proxy" ? parent_of(parent) : parent;
}

std::optional<int> columns_of_process(pid_t process) {
  const int descriptor = open(process_file(process, "fd/2").c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return std::nullopt;
  const auto columns = columns_of(descriptor);
  close(descriptor);
  return columns;
}

// `hortator launch` reads its mpirun's standard error and passes it on to its own.
std::optional<int> columns_of_launcher() {
  const auto mpirun = launcher_of_this();
  if (!is_mpirun(process_name(mpirun))) return std::nullopt;
  const auto parent = parent_of(mpirun);
  return columns_of_process(process_name(parent) == "hortator" ? parent : mpirun);
}

constexpr const char* to_start_of_cleared_line = "\r\x1b[K";

// A single write: standard error is unbuffered, and mpirun forwards each write as a whole.
void write(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stderr); }

}  // namespace

bool is_mpirun(std::string_view process_name) {
  static constexpr std::array<std::string_view, 9> names = {"mpirun",        "mpiexec",       "orterun",
                                                            "prterun",       "prun",          "mpirun.openmpi",
                                                            "mpiexec.hydra", "mpiexec.mpich", "mpirun.mpich"};
  return std::ranges::find(names, process_name) != names.end();
}

std::optional<int> terminal_columns() {
  const auto own = columns_of(STDERR_FILENO);
  return own ? own : columns_of_launcher();
}

TerminalScreen::~TerminalScreen() { keep(); }

// The last column stays empty: terminals differ in when they wrap.
int TerminalScreen::columns() const { return terminal_columns().value_or(80) - 1; }

// Sets the guard before locking: a logging thread locks the log first, then this screen.
void TerminalScreen::show(const std::string& line) {
  log::set_line_guard([this] { clear_line(); });
  const std::scoped_lock lock(mutex_);
  write(to_start_of_cleared_line + line);
  is_drawn_ = true;
}

void TerminalScreen::keep() {
  log::set_line_guard(nullptr);
  const std::scoped_lock lock(mutex_);
  if (is_drawn_) write("\n");
  is_drawn_ = false;
}

void TerminalScreen::clear_line() {
  const std::scoped_lock lock(mutex_);
  if (is_drawn_) write(to_start_of_cleared_line);
  is_drawn_ = false;
}

void LogScreen::show(const std::string& line) { log::write_info(line); }

std::unique_ptr<Screen> make_screen() {
  if (terminal_columns()) return std::make_unique<TerminalScreen>();
  return std::make_unique<LogScreen>();
}

}  // namespace hortator::observe
