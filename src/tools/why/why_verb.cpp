#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <iostream>
#include <utility>

#include "core/environment/environment.hpp"
#include "core/text/text.hpp"
#include "runtime/identity/flight_record.hpp"
#include "tools/verbs.hpp"
#include "tools/watch/run_folder.hpp"
#include "tools/why/diagnosis.hpp"
#include "tools/why/evidence.hpp"
#include "tools/why/why_json.hpp"
#include "tools/why/why_view.hpp"

namespace hortator::tools {
namespace {

// As a run that was stopped: it is to be started again.
constexpr int retry_code = 75;

Options why_options() {
  Options options;
  options.named.add_options()("json", "print the diagnosis as JSON")("help,h", "print this help");
  return options;
}

int print_why_help() {
  std::cout
      << "usage: hortator why RUN... [options]\n\n"
         "Reads what the ranks, their watchdogs and the launcher have written in a run's folder, and prints where the\n"
         "failure began, what followed from it, its class, and whether a restart can help: `retry` or `stop`, with "
         "the\n"
         "rule that decided. It stops only where no restart can help. Where the records cannot tell, it retries; an\n"
         "error that comes again at the same step stops. `hortator launch --max-restarts` asks the same rules.\n\n"
         "  hortator why runs/digits\n"
         "  hortator why runs/digits --json\n"
         "  hortator why runs/digits; [ $? = 75 ] && sbatch job.sh     (start it again if that can help)\n\n"
         "exit code: 0 finished, running, or nothing is known; 75 a restart can help, or the run was stopped on\n"
         "purpose; 1 it cannot; 2 wrong usage. For several runs: 1 if one of them has it, else 75 if one has it\n\n"
      << why_options().named;
  return 0;
}

int terminal_columns() {
  constexpr int usual = 100;
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  long long width = 0;
  const auto asked = core::variable("COLUMNS");
  return asked && text::parse_integer(*asked, width) && width > 0 ? static_cast<int>(width) : usual;
}

bool is_coloured() { return isatty(STDOUT_FILENO) != 0 && !core::variable("NO_COLOR"); }

int code_of(const Diagnosis& diagnosis) {
  if (!diagnosis.decision || diagnosis.state == "finished") return 0;
  return *diagnosis.decision == Decision::stop ? 1 : retry_code;
}

int code_of_all(const std::vector<std::pair<std::string, Diagnosis>>& runs) {
  const auto has = [&](int code) {
    return std::ranges::any_of(runs, [&](const auto& run) { return code_of(run.second) == code; });
  };
  return has(1) ? 1 : has(retry_code) ? retry_code : 0;
}

void point_to_flight(const std::filesystem::path& folder, const Diagnosis& diagnosis) {
  if (!diagnosis.decision || !std::filesystem::exists(folder / "status" / runtime::flight_file)) return;
  std::cout << "the last collectives of each rank: hortator trace " << folder.string() << " --flight\n";
}

}  // namespace

int why_verb(const Arguments& arguments) {
  const auto values = parse(arguments, with_text(why_options(), "run"));
  if (values.contains("help")) return print_why_help();
  if (!values.contains("run"))
    throw UsageError({.what = "Expected the folder of a run", .hint = "hortator why runs/digits"});
  std::vector<std::pair<std::string, Diagnosis>> runs;
  for (const auto& name : values["run"].as<std::vector<std::string>>()) {
    for (const auto& folder : runs_in(name)) runs.emplace_back(folder.string(), diagnose(read_evidence(folder)));
  }
  if (values.contains("json")) {
    std::cout << why_json(runs);
  } else {
    for (const auto& [folder, diagnosis] : runs) {
      std::cout << why_view(folder, diagnosis, terminal_columns(), is_coloured());
      point_to_flight(folder, diagnosis);
    }
  }
  return code_of_all(runs);
}

}  // namespace hortator::tools
