#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <functional>
#include <hortator/error.hpp>
#include <iostream>
#include <thread>

#include "core/environment/environment.hpp"
#include "core/text/text.hpp"
#include "core/time.hpp"
#include "core/whole_file.hpp"
#include "launch/settings/walltime.hpp"
#include "tools/programs.hpp"
#include "tools/verbs.hpp"
#include "tools/watch/run_folder.hpp"
#include "tools/watch/runs_view.hpp"
#include "tools/watch/watch_json.hpp"
#include "tools/watch/watch_metrics.hpp"
#include "tools/watch/watch_page.hpp"

namespace hortator::tools {
namespace {

namespace po = boost::program_options;
using Clock = std::chrono::steady_clock;

constexpr std::size_t history_rows = 240;
constexpr std::size_t page_rows = 4000;
constexpr double min_page_interval = 10;  // between two pages: browsers read them again

Options watch_options() {
  Options options;
  options.named.add_options()("once", "print the page once and exit")(
      "html", po::value<std::string>()->value_name("FILE"),
      "replace FILE by a page for a browser, at each update; with --once, once")(
      "metrics", po::value<std::string>()->value_name("FILE"),
      "replace FILE by the figures of the run in the format of Prometheus, at each update; with --once, once")(
      "interval", po::value<double>()->default_value(2)->value_name("SECONDS"), "time between updates")(
      "colour", po::value<std::string>()->default_value("auto")->value_name("WHEN"),
      "always, never, or auto: on a terminal, unless NO_COLOR is set")(
      "color", po::value<std::string>()->value_name("WHEN"), "the same")("json", "print the state as JSON, once")(
      "help,h", "print this help");
  return options;
}

int print_watch_help() {
  std::cout
      << "usage: hortator watch RUN... [options]\n\n"
         "Shows a running or finished run from its folder: state, loss, rate, time left, memory, GPUs, CPUs,\n"
         "communication, waiting for data, checkpoints, slow ranks, restarts. It only reads files, so that it "
         "does not\n"
         "disturb the job and works on any machine that sees the folder. For several runs, or the folder of a job\n"
         "array or a sweep, it shows a line each.\n\n"
         "  hortator watch runs/digits\n"
         "  hortator watch runs/digits --once\n"
         "  hortator watch runs/sweep runs/other --json\n"
         "  hortator watch runs/digits --metrics /var/lib/prometheus/node-exporter/digits.prom\n"
         "  hortator watch runs/digits --html digits.html      (one file, for a browser; follows the run)\n\n"
         "exit code: 0; 1 with --once or --json if a run failed or was killed; 2 wrong usage\n\n"
      << watch_options().named;
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

/// The number of the Slurm job that a run is in; empty for any other run.
std::string slurm_job_of(const tools::WatchFacts& facts) {
  constexpr std::string_view slurm = "slurm ";
  if (facts.ranks.empty() || !facts.ranks.front().job.starts_with(slurm)) return "";
  auto job = facts.ranks.front().job.substr(slurm.size());
  return job.find_first_not_of("0123456789_") == std::string::npos ? job : "";
}

/// What only Slurm knows of a job, queried at most once a minute each.
class SlurmQuery {
 public:
  /// The end of the job's time.
  std::optional<double> deadline(const tools::WatchFacts& facts) {
    return deadline_.value(facts, "squeue --noheader --format=%L --jobs=", [](const std::string& answer) {
      const auto left = launching::parse_walltime(answer);
      return left ? std::optional(core::unix_time() + static_cast<double>(*left)) : std::nullopt;
    });
  }
  /// The energy of the whole job in joules, where the site measures it.
  std::optional<double> joules(const tools::WatchFacts& facts) {
    constexpr double max_joules = 1e15;  // Slurm's numbers for "unknown" are larger
    return joules_.value(
        facts,
        "sacct --noheader --parsable2 --allocations --format=ConsumedEnergyRaw --jobs=", [](const std::string& answer) {
          long long joules = 0;
          const bool is_known = text::parse_integer(answer, joules) && joules > 0 && joules < max_joules;
          return is_known ? std::optional(static_cast<double>(joules)) : std::nullopt;
        });
  }

 private:
  class Answer {
   public:
    template <typename Read>
    std::optional<double> value(const tools::WatchFacts& facts, const char* command, const Read& read) {
      const auto job = slurm_job_of(facts);
      if (job.empty()) return {};
      if (asked_ && Clock::now() - *asked_ < std::chrono::minutes(1)) return value_;
      asked_ = Clock::now();
      value_ = read(text::first_line(output_of(command + job)));
      return value_;
    }

   private:
    std::optional<Clock::time_point> asked_;
    std::optional<double> value_;
  };

  Answer deadline_;
  Answer joules_;
};

tools::WatchFacts read_facts(const std::filesystem::path& folder, SlurmQuery& scheduler) {
  auto facts = read_run(folder, history_rows);
  const bool is_known = has_ended(facts) || (!facts.ranks.empty() && facts.ranks.front().deadline);
  if (!is_known) facts.deadline = scheduler.deadline(facts);
  // Slurm knows the energy of a job when it has ended, and steps do not slow down for the question then.
  if (has_ended(facts) && observe::energy_of(facts.ranks).source.empty()) {
    if (const auto joules = scheduler.joules(facts)) {
      facts.ranks.front().joules = *joules;
      facts.ranks.front().energy_source = "Slurm, the whole job";
    }
  }
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

std::vector<std::filesystem::path> run_folders_in(const po::variables_map& values) {
  if (!values.contains("run"))
    throw UsageError({.what = "Expected the folder of a run", .hint = "hortator watch runs/digits"});
  std::vector<std::filesystem::path> folders;
  for (const auto& name : values["run"].as<std::vector<std::string>>()) {
    for (auto& run : runs_in(name)) folders.push_back(std::move(run));
  }
  return folders;
}

/// The runs of the command line, and what is shown of them.
class Watched {
 public:
  Watched(std::vector<std::filesystem::path> folders, bool colour)
      : folders_(std::move(folders)), schedulers_(folders_.size()), colour_(colour) {}

  void read() {
    runs_.clear();
    for (std::size_t i = 0; i < folders_.size(); ++i) runs_.push_back(read_facts(folders_[i], schedulers_[i]));
  }
  bool has_ended() const {
    return std::all_of(runs_.begin(), runs_.end(), [](const auto& run) { return tools::has_ended(run); });
  }
  bool has_failed() const {
    return std::any_of(runs_.begin(), runs_.end(), [](const auto& run) { return run.failure || run.is_killed; });
  }
  std::string page() const {
    const ViewOptions options{.columns = columns(), .colour = colour_, .utf8 = has_utf8(), .now = core::unix_time()};
    return runs_.size() == 1 ? watch_view(runs_.front(), options) : runs_view(runs_, options);
  }
  std::string json() const { return watch_json(runs_, core::unix_time()); }
  /// Writes the metrics of the run, which must be the only one.
  void write_metrics(const std::string& file) const { write(file, watch_metrics(runs_.front(), core::unix_time())); }
  /// Writes a page for a browser, of the run, which must be the only one.
  void write_page(const std::string& file, double interval) const {
    auto facts = runs_.front();
    facts.rows = read_run(folders_.front(), page_rows).rows;
    write(file, watch_page(facts, read_settings(folders_.front()), core::unix_time(), interval));
  }
  std::size_t count() const { return runs_.size(); }

 private:
  static void write(const std::string& file, const std::string& content) {
    if (!core::write_whole(file, file + ".new", content))
      throw Error({.what = "Cannot write " + text::quote(file), .hint = "name a file in a folder that you may write"});
  }

  std::vector<std::filesystem::path> folders_;
  std::vector<SlurmQuery> schedulers_;
  bool colour_;
  std::vector<WatchFacts> runs_;
};

}  // namespace

namespace {

/// Calls `write` at each update, until the run has ended.
int follow(Watched& watched, const char* option, double interval, bool once, const std::function<void()>& write) {
  if (watched.count() != 1)
    throw UsageError(
        {.what = text::concat("--", option, ": expected one run, got ", watched.count()), .hint = "name one"});
  std::signal(SIGINT, [](int) { is_interrupted = 1; });
  std::signal(SIGTERM, [](int) { is_interrupted = 1; });
  write();
  while (!once && is_interrupted == 0 && !watched.has_ended()) {
    sleep_for(interval);
    watched.read();
    write();
  }
  return once && watched.has_failed() ? 1 : 0;
}

}  // namespace

int watch_verb(const Arguments& arguments) {
  const auto values = parse(arguments, with_text(watch_options(), "run"));
  if (values.contains("help")) return print_watch_help();
  const double interval = values["interval"].as<double>();
  if (!(interval >= 0.1)) throw UsageError({.what = "--interval: expected at least 0.1 seconds"});
  const auto* colour = values.contains("color") ? "color" : "colour";
  Watched watched(run_folders_in(values), wants_colour(values[colour].as<std::string>()));
  watched.read();
  if (values.contains("json")) {
    std::cout << watched.json();
    return watched.has_failed() ? 1 : 0;
  }
  const bool once = values.contains("once");
  if (values.contains("metrics")) {
    const auto file = values["metrics"].as<std::string>();
    return follow(watched, "metrics", interval, once, [&] { watched.write_metrics(file); });
  }
  if (values.contains("html")) {
    const auto file = values["html"].as<std::string>();
    const double seconds = std::max(interval, min_page_interval);
    return follow(watched, "html", seconds, once, [&] { watched.write_page(file, seconds); });
  }
  if (!values.contains("once") && isatty(STDOUT_FILENO) != 0) {
    const FullScreen screen;
    while (is_interrupted == 0 && !watched.has_ended()) {
      FullScreen::show(watched.page());
      sleep_for(interval);
      watched.read();
    }
  }
  std::cout << watched.page();
  return values.contains("once") && watched.has_failed() ? 1 : 0;
}

}  // namespace hortator::tools
