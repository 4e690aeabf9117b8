#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <hortator/error.hpp>
#include <iostream>
#include <thread>

#include "core/environment/environment.hpp"
#include "core/text/text.hpp"
#include "core/time.hpp"
#include "launch/job/walltime.hpp"
#include "tools/programs.hpp"
#include "tools/verbs.hpp"
#include "tools/watch/run_folder.hpp"

namespace hortator::tools {
namespace {

namespace po = boost::program_options;
using Clock = std::chrono::steady_clock;

constexpr std::size_t history_rows = 240;

Options known_options() {
  Options options;
  options.named.add_options()("once", "print the page once and exit")(
      "interval", po::value<double>()->default_value(2)->value_name("SECONDS"), "time between updates")(
      "colour", po::value<std::string>()->default_value("auto")->value_name("WHEN"),
      "always, never, or auto: on a terminal, unless NO_COLOR is set")("help,h", "print this help");
  return options;
}

int print_help() {
  std::cout << "usage: hortator watch RUN [options]\n\n"
               "Shows a running or finished run from its folder: state, loss, rate, time left, memory, GPUs, CPUs,\n"
               "communication, waiting for data, checkpoints, slow ranks, restarts. It only reads files, so that it "
               "does not\n"
               "disturb the job and works on any machine that sees the folder.\n\n"
               "  hortator watch runs/digits\n"
               "  hortator watch runs/digits --once\n\n"
               "exit code: 0; 1 with --once for a run that failed or was killed; 2 wrong usage\n\n"
            << known_options().named;
  return 0;
}

std::string variable_or_empty(const char* name) { return core::variable(name).value_or(""); }

bool wants_colour(const std::string& when) {
  if (when == "always" || when == "never") return when == "always";
  if (when != "auto") {
    throw UsageError({.what = "--colour: expected always, never or auto, got " + text::quote(when)});
  }
  return isatty(STDOUT_FILENO) != 0 && variable_or_empty("NO_COLOR").empty() && variable_or_empty("TERM") != "dumb";
}

bool has_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const auto value = variable_or_empty(name);
    if (value.empty()) continue;
    return value.find("UTF-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return false;
}

int columns() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  long long width = 0;
  return text::parse_integer(variable_or_empty("COLUMNS"), width) && width > 0 ? static_cast<int>(width) : 80;
}

/// The end of the job, queried from Slurm at most once a minute.
class DeadlineQuery {
 public:
  std::optional<double> deadline(const tools::WatchFacts& facts) {
    constexpr std::string_view slurm = "slurm ";
    if (facts.ranks.empty() || !facts.ranks.front().job.starts_with(slurm)) return {};
    const auto job = facts.ranks.front().job.substr(slurm.size());
    if (job.find_first_not_of("0123456789_") != std::string::npos) return {};
    if (asked_ && Clock::now() - *asked_ < std::chrono::minutes(1)) return deadline_;
    asked_ = Clock::now();
    const auto left =
        launching::parse_walltime(text::first_line(output_of("squeue --noheader --format=%L --jobs=" + job)));
    deadline_ = left ? std::optional(core::unix_time() + static_cast<double>(*left)) : std::nullopt;
    return deadline_;
  }

 private:
  std::optional<Clock::time_point> asked_;
  std::optional<double> deadline_;
};

tools::WatchFacts read_facts(const std::filesystem::path& folder, DeadlineQuery& scheduler) {
  auto facts = read_run(folder, history_rows);
  const bool is_known = has_ended(facts) || (!facts.ranks.empty() && facts.ranks.front().deadline);
  if (!is_known) facts.deadline = scheduler.deadline(facts);
  return facts;
}

volatile std::sig_atomic_t is_interrupted = 0;

/// Shows pages on the alternate screen of the terminal, and restores the terminal at the end.
class FullScreen {
 public:
  FullScreen() {
    std::signal(SIGINT, [](int) { is_interrupted = 1; });
    std::signal(SIGTERM, [](int) { is_interrupted = 1; });
    std::cout << "\x1b[?1049h\x1b[?25l";
  }
  ~FullScreen() { std::cout << "\x1b[?25h\x1b[?1049l" << std::flush; }
  FullScreen(const FullScreen&) = delete;
  FullScreen& operator=(const FullScreen&) = delete;

  static void show(const std::string& page) {
    std::cout << "\x1b[H";
    for (const auto& line : text::split(page, '\n')) std::cout << line << "\x1b[K\r\n";
    std::cout << "\x1b[J" << std::flush;
  }
};

void sleep_for(double seconds) {
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (is_interrupted == 0 && Clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

}  // namespace

int watch_verb(const Arguments& arguments) {
  const auto values = parse(arguments, with_text(known_options(), "run"));
  if (values.contains("help")) return print_help();
  if (!values.contains("run") || values["run"].as<std::vector<std::string>>().size() != 1) {
    throw UsageError({.what = "Expected the folder of one run", .hint = "hortator watch runs/digits"});
  }
  const std::filesystem::path folder = values["run"].as<std::vector<std::string>>().front();
  const double interval = values["interval"].as<double>();
  if (!(interval >= 0.1)) throw UsageError({.what = "--interval: expected at least 0.1 seconds"});
  check_run_folder(folder);
  const bool colour = wants_colour(values["colour"].as<std::string>());
  DeadlineQuery scheduler;
  const auto page = [&](const tools::WatchFacts& facts) {
    return watch_view(facts, {.columns = columns(), .colour = colour, .utf8 = has_utf8(), .now = core::unix_time()});
  };

  auto facts = read_facts(folder, scheduler);
  if (!values.contains("once") && isatty(STDOUT_FILENO) != 0) {
    const FullScreen screen;
    while (is_interrupted == 0 && !has_ended(facts)) {
      FullScreen::show(page(facts));
      sleep_for(interval);
      facts = read_facts(folder, scheduler);
    }
  }
  std::cout << page(facts);
  return values.contains("once") && (facts.failure || facts.is_killed) ? 1 : 0;
}

}  // namespace hortator::tools
