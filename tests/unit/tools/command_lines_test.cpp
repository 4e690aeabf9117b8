// What users of mpirun, Accelerate, Slurm and PBS type, and the exact outcome of each command line.
#include <hortator/error.hpp>
#include <iostream>
#include <map>

#include "core/text/text.hpp"
#include "launch/job/directives.hpp"
#include "launch/job/quote.hpp"
#include "launch/request.hpp"
#include "support/catch.hpp"
#include "tools/command_line/command_line.hpp"
#include "tools/flags.hpp"

using namespace hortator;
using launching::Dialect;
using tools::Arguments;

namespace {

enum class Where { workstation, in_slurm, in_pbs, slurm_login, pbs_login };

struct CommandLineCase {
  Where where = Where::workstation;
  const char* typed = "";
  const char* outcome = "";
};

constexpr auto W = Where::workstation;
constexpr auto S = Where::in_slurm;
constexpr auto P = Where::in_pbs;
constexpr auto L = Where::slurm_login;
constexpr auto Q = Where::pbs_login;

const std::vector<CommandLineCase>& cases() {
  static const std::vector<CommandLineCase> table = {
#include "command_lines.inc"
  };
  return table;
}

template <Where where>
Dialect dialect_at(const Arguments& /*arguments*/) {
  switch (where) {
    case Where::in_slurm:
    case Where::slurm_login:
      return Dialect::slurm;
    case Where::in_pbs:
    case Where::pbs_login:
      return Dialect::pbs;
    case Where::workstation:
      break;
  }
  return Dialect::mpi;
}

auto* dialect_function(Where where) {
  switch (where) {
    case Where::in_slurm:
      return dialect_at<Where::in_slurm>;
    case Where::in_pbs:
      return dialect_at<Where::in_pbs>;
    case Where::slurm_login:
      return dialect_at<Where::slurm_login>;
    case Where::pbs_login:
      return dialect_at<Where::pbs_login>;
    case Where::workstation:
      break;
  }
  return dialect_at<Where::workstation>;
}

tools::Options options_of(launching::Scope verb, Where where) {
  tools::Options options;
  options.ends_at_text = true;
  tools::add_setting_flags(options, verb);
  options.named.add_options()("dry-run", "")("help,h", "");
  options.dialect = dialect_function(where);
  return tools::with_text(options, "program");
}

std::string launch_outcome(const launching::Settings& settings, const Arguments& command, Where where) {
  auto request = launching::request_of(settings);
  request.program = command.front();
  request.arguments = {command.begin() + 1, command.end()};
  const launching::LaunchEnvironment environment{.in_slurm = where == Where::in_slurm,
                                                 .in_other_batch_job = where == Where::in_pbs,
                                                 .mpi = launching::MpiFlavor::open_mpi,
                                                 .cores = 8,
                                                 .cpus = 8};
  return launching::shell_line(launching::command_line(request, environment));
}

// The lines for the scheduler, without those that every job has, then how the ranks are started if the user chose that.
std::string job_outcome(const launching::Settings& settings, const Arguments& command, Where where) {
  const auto scheduler = where == Where::pbs_login ? launching::Scheduler::pbs : launching::Scheduler::slurm;
  const auto job = launching::job_of(settings, scheduler, command.front(), {command.begin() + 1, command.end()});
  auto lines = launching::directives(job);
  std::erase_if(lines, [](const std::string& line) {
    return line.starts_with("--signal=") || line == "--requeue" || line == "--open-mode=append" || line == "-k doe" ||
           line == "--job-name=train" || line == "-N train" || line == "--output=%x-%j.out" || line == "-j oe";
  });
  auto text = text::join(lines, " ");
  const auto& request = job.request;
  if (!request.launcher_options.empty() || !request.cpu_bind.empty() || !request.map_by.empty())
    text += " ; " + launch_outcome(settings, command, Where::in_slurm);
  return text;
}

// "note: --x" for each line that reports an option without effect.
std::string notes_in(const std::string& lines) {
  std::string notes;
  for (const auto& line : text::split(lines, '\n')) {
    if (line.starts_with("hortator: ")) notes += "note: " + line.substr(10, line.find(" has no effect") - 10) + "; ";
  }
  return notes;
}

class CapturedErrors {
 public:
  CapturedErrors() : before_(std::cerr.rdbuf(lines_.rdbuf())) {}
  ~CapturedErrors() { std::cerr.rdbuf(before_); }
  CapturedErrors(const CapturedErrors&) = delete;
  CapturedErrors& operator=(const CapturedErrors&) = delete;
  std::string text() const { return lines_.str(); }

 private:
  std::ostringstream lines_;
  std::streambuf* before_;
};

std::string outcome_of(const CommandLineCase& one) {
  auto arguments = text::split(one.typed, ' ');
  const auto verb = arguments.front() == "launch" ? launching::Scope::launch : launching::Scope::job;
  arguments.erase(arguments.begin());
  const CapturedErrors errors;
  try {
    const auto values = tools::parse(arguments, options_of(verb, one.where));
    if (!values.contains("program")) return "no program";
    const launching::Settings settings({tools::settings_from_flags(values, verb)});
    const auto command = values["program"].as<Arguments>();
    const auto text = verb == launching::Scope::launch ? launch_outcome(settings, command, one.where)
                                                       : job_outcome(settings, command, one.where);
    return notes_in(errors.text()) + text;
  } catch (const UsageError& error) {
    return notes_in(errors.text()) + "error: " + error.what();
  }
}

}  // namespace

TEST_CASE("each command line has exactly its outcome") {
  CHECK(cases().size() >= 250);
  for (const auto& one : cases()) {
    INFO(one.typed);
    CHECK(outcome_of(one) == one.outcome);
  }
}

TEST_CASE("no command line is in the table twice") {
  std::map<std::pair<Where, std::string>, int> seen;
  for (const auto& one : cases()) CHECK(++seen[{one.where, one.typed}] == 1);
}

// Prints the table with the present outcomes, to be read and taken over by a person: test_tools "[.print]"
TEST_CASE("print the outcomes of all command lines", "[.print]") {
  for (const auto& one : cases()) {
    constexpr std::string_view names = "WSPLQ";
    std::cout << "{" << names[static_cast<std::size_t>(one.where)] << ", R\"(" << one.typed << ")\",\n R\"("
              << outcome_of(one) << ")\"},\n";
  }
}
