#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <hortator/error.hpp>
#include <iostream>
#include <thread>

#include "core/environment/environment.hpp"
#include "core/text/text.hpp"
#include "core/unix_time.hpp"
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
  options.named.add_options()("once", "shows it once and stops")(
      "interval", po::value<double>()->default_value(2)->value_name("SECONDS"), "how often to look")(
      "colour", po::value<std::string>()->default_value("auto")->value_name("WHEN"),
      "always, never, or auto: on a terminal, unless NO_COLOR is set")("help,h", "this text");
  return options;
}

int print_help() {
  std::cout << "usage: hortator watch RUN [options]\n\n"
               "Shows a running or finished run from its folder: state, loss, rate, time left, memory, GPUs, CPUs,\n"
               "communication, waiting for data, checkpoints, slow ranks, restarts. It reads files alone: the job does "
               "not notice, "
               "and any machine\n"
               "that sees the folder will do.\n\n"
               "  hortator watch runs/digits\n"
               "  hortator watch runs/digits --once\n\n"
               "exit code: 0; 1 with --once for a run that failed; 2 wrong usage\n\n"
            << known_options().named;
  return 0;
}

std::string word(const char* name) { return core::variable(name).value_or(""); }

bool wants_colour(const std::string& when) {
  if (when == "always" || when == "never") return when == "always";
  if (when != "auto") {
    throw UsageError({.what = "--colour " + when + " is unknown", .hint = "known are always, never and auto"});
  }
  return isatty(STDOUT_FILENO) != 0 && word("NO_COLOR").empty() && word("TERM") != "dumb";
}

bool has_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const auto value = word(name);
    if (value.empty()) continue;
    return value.find("UTF-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return false;
}

int columns() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  long long asked = 0;
  return text::parse_integer(word("COLUMNS"), asked) && asked > 0 ? static_cast<int>(asked) : 80;
}

/// When the job ends, by Slurm's word: asked at most once a minute.
class SchedulersWord {
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

tools::WatchFacts look(const std::filesystem::path& folder, SchedulersWord& scheduler) {
  auto facts = read_run(folder, history_rows);
  const bool knows = facts.outcome || facts.failure || (!facts.ranks.empty() && facts.ranks.front().deadline);
  if (!knows) facts.deadline = scheduler.deadline(facts);
  return facts;
}

bool has_ended(const tools::WatchFacts& facts) { return facts.outcome || facts.failure; }

volatile std::sig_atomic_t is_interrupted = 0;

/// The terminal's own screen stays as it was.
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
    throw UsageError({.what = "watch needs one run", .hint = "name its folder: hortator watch runs/digits"});
  }
  const std::filesystem::path folder = values["run"].as<std::vector<std::string>>().front();
  const double interval = values["interval"].as<double>();
  if (!(interval >= 0.1)) throw UsageError({.what = "--interval is too short", .hint = "give 0.1 seconds or more"});
  check_run_folder(folder);
  const bool colour = wants_colour(values["colour"].as<std::string>());
  SchedulersWord scheduler;
  const auto page = [&](const tools::WatchFacts& facts) {
    return watch_view(facts, {.columns = columns(), .colour = colour, .utf8 = has_utf8(), .now = core::unix_time()});
  };

  auto facts = look(folder, scheduler);
  if (!values.contains("once") && isatty(STDOUT_FILENO) != 0) {
    const FullScreen screen;
    while (is_interrupted == 0 && !has_ended(facts)) {
      FullScreen::show(page(facts));
      sleep_for(interval);
      facts = look(folder, scheduler);
    }
  }
  std::cout << page(facts);
  return values.contains("once") && facts.failure ? 1 : 0;
}

}  // namespace hortator::tools
