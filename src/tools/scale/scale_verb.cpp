#include <algorithm>
#include <hortator/error.hpp>
#include <iostream>

#include "core/text/text.hpp"
#include "core/time.hpp"
#include "launch/job/directives.hpp"
#include "launch/job/quote.hpp"
#include "tools/command_line/command_line.hpp"
#include "tools/flags.hpp"
#include "tools/job/submitting.hpp"
#include "tools/launch/launch_environment.hpp"
#include "tools/launch/machine.hpp"
#include "tools/scale/runs.hpp"
#include "tools/scale/scale_page.hpp"
#include "tools/scale/study_folder.hpp"
#include "tools/settings_sources.hpp"
#include "tools/verbs.hpp"
#include "tools/written_file.hpp"

namespace hortator::tools {
namespace {

namespace po = boost::program_options;
namespace fs = std::filesystem;

const OwnFlags& own_flags() {
  static const OwnFlags flags = {"nodes", "ranks", "run-dir", "max-restarts"};
  return flags;
}

Options scale_options() {
  Options options;
  options.ends_at_text = true;
  options.named.add_options()("nodes", po::value<std::string>()->value_name("N,N,..."),
                              "sizes in nodes, with --ranks-per-node")(
      "ranks,n", po::value<std::string>()->value_name("N,N,..."),
      "sizes in ranks, on this machine or in this allocation")(
      "peak-flops", po::value<double>()->value_name("N"),
      "peak operations per second of each rank's device, for MFU; common GPUs are known (16-bit)")(
      "repeats", po::value<int>()->default_value(3)->value_name("N"), "runs of each size")(
      "out", po::value<std::string>()->default_value("runs/scale")->value_name("DIR"), "folder of the study")(
      "submit", "submit one job for each size; otherwise the runs start on this machine or in this allocation")(
      "help,h", "print this help");
  add_setting_flags(options, launching::Scope::job, own_flags());
  return options;
}

int print_scale_help() {
  std::cout
      << "usage: hortator scale strong|weak --nodes 1,2,4,8 --ranks-per-node N [options] [--submit] -- PROGRAM "
         "[ARGUMENTS]\n"
         "       hortator scale report DIR [--html FILE]\n\n"
         "Runs PROGRAM on several numbers of ranks, three times each, and reports speed-up, efficiency and a model's\n"
         "prediction for larger sizes. strong: the total work is fixed; weak: the work of each rank is fixed. The "
         "program\n"
         "needs no change: Hortator times its updates and leaves out the first few.\n\n"
         "  hortator scale strong --nodes 1,2,4,8 --ranks-per-node 4 --time 00:20:00 --submit -- ./train --steps 200\n"
         "  hortator scale weak --ranks 1,2,4 -- ./train --steps 200\n"
         "  hortator scale report runs/scale --html study.html      (one file, for a browser)\n\n"
         "exit code: 0 done; 1 a run failed, or runs are missing or cannot be compared; 2 wrong usage\n\n"
      << scale_options().named << synonym_help(scale_options());
  return 0;
}

/// What a launch knows of the command line: each run of the study is started with it.
std::vector<std::string> launch_flags(const po::variables_map& values) {
  auto own = own_flags();
  if (values.contains("nodes")) own.insert("ranks-per-node");
  std::vector<std::string> flags;
  if (const auto file = config_file_of(values)) flags.push_back("--config-file=" + fs::absolute(*file).string());
  for (const auto& [name, given] : settings_from_flags(values, launching::Scope::launch, own)) {
    const auto& key = launching::find_key(name, "");
    for (const auto& value : given.values) {
      const bool is_switch = key.kind == launching::KeyKind::onoff;
      flags.push_back("--" + launching::flag_of(key) + (is_switch ? "" : "=" + value));
    }
  }
  return flags;
}

/// The plan that the command line describes.
ScalePlan plan_of(Growth growth, const po::variables_map& values, const launching::Settings& settings) {
  if (!values.contains("program")) {
    throw UsageError(
        {.what = "The program is missing", .hint = "name it after --: hortator scale strong --ranks 1,2 -- ./train"});
  }
  if (values.contains("nodes") == values.contains("ranks")) {
    throw UsageError({.what = "Expected sizes by either --nodes or --ranks",
                      .hint = "use --nodes 1,2,4,8 with --ranks-per-node, or --ranks 1,2,4"});
  }
  ScalePlan plan{.growth = growth,
                 .repeats = values["repeats"].as<int>(),
                 .command = values["program"].as<std::vector<std::string>>(),
                 .cores_per_node = core_count()};
  if (plan.repeats < 1 || plan.repeats > 100)
    throw UsageError({.what = text::concat("--repeats: expected a number from 1 to 100, got '", plan.repeats, "'")});
  if (values.contains("peak-flops")) {
    plan.peak_flops = values["peak-flops"].as<double>();
    if (!(*plan.peak_flops > 0))
      throw UsageError({.what = "--peak-flops: expected a number above 0", .hint = "such as --peak-flops 312e12"});
  }
  if (values.contains("ranks")) {
    plan.ranks = parse_counts(values["ranks"].as<std::string>(), "--ranks");
  } else {
    plan.nodes = parse_counts(values["nodes"].as<std::string>(), "--nodes");
    const auto per_node = settings.number("ranks_per_node");
    if (!per_node) {
      throw UsageError({.what = "--nodes needs --ranks-per-node", .hint = "add --ranks-per-node N"});
    }
    for (const int nodes : plan.nodes) plan.ranks.push_back(nodes * *per_node);
  }
  plan.launch = launch_flags(values);
  check_program(plan.command.front());
  plan.program = checksum_of(plan.command.front());
  return plan;
}

/// Makes the runs of these sizes that are missing. The largest size also times collectives.
void make_runs(const fs::path& folder, const ScalePlan& plan, const std::vector<int>& sizes) {
  for (const auto& run : runs_of(plan)) {
    const bool wanted = std::ranges::find(sizes, run.ranks) != sizes.end();
    if (wanted && !has_point(folder, run)) make_run(folder, plan, run);
  }
  const int largest = plan.ranks.back();
  if (largest > 1 && sizes.back() == largest && !fs::exists(folder / collectives_file))
    measure_collectives(folder, plan, largest);
}

int report_on(const fs::path& folder) {
  std::cout << write_report(folder) << "\nreport: " << (folder / "report.md").string() << '\n';
  return 0;
}

std::vector<std::string> job_lines(const launching::Settings& settings, launching::Scheduler scheduler,
                                   const std::string& records) {
  auto job = launching::job_of(settings, scheduler, "hortator", {});
  if (job.array) throw UsageError({.what = "--array cannot be used in a study", .hint = "--nodes has the sizes"});
  job.output = records;
  auto lines = launching::directives(job);
  // A job of a study is never requeued: times from two allocations would be mixed.
  std::erase_if(lines, [](const std::string& line) { return line == "--requeue" || line.starts_with("--signal="); });
  return lines;
}

/// The script of one job, which starts `hortator scale run` in its allocation.
std::string study_script(const fs::path& folder, int ranks, const launching::Settings& settings,
                         launching::Scheduler scheduler) {
  std::string script = "#!/bin/bash\n";
  for (const auto& line : job_lines(settings, scheduler, folder.string())) {
    script.append(launching::facts_of(scheduler).prefix).append(line).append("\n");
  }
  script += "cd " + launching::shell_quote(fs::current_path().string()) + " || exit 1\n";
  for (const auto& module : settings.list("modules")) script += "module load " + launching::shell_quote(module) + "\n";
  for (const auto& variable : settings.list("environment"))
    script += "export " + launching::shell_quote(variable) + "\n";
  const std::vector<std::string> command = {fs::read_symlink("/proc/self/exe").string(), "scale", "run",
                                            folder.string(), std::to_string(ranks)};
  return script + "exec " + launching::shell_line(command) + "\n";
}

int submit_jobs(const fs::path& folder, const ScalePlan& plan, const po::variables_map& values) {
  if (plan.nodes.empty()) {
    throw UsageError({.what = "--submit cannot be used with --ranks",
                      .why = "a job is given whole nodes",
                      .hint = "use --nodes and --ranks-per-node"});
  }
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    auto flags = settings_from_flags(values, launching::Scope::job, own_flags());
    flags["nodes"] = {.values = {std::to_string(plan.nodes[i])}, .origin = "--nodes"};
    const auto file = config_file_of(values);
    const auto settings = gather_settings(flags, file);
    const auto scheduler = scheduler_of(settings);
    const auto script = folder / text::concat("job_", plan.ranks[i], ".sh");
    write_script(script, study_script(folder, plan.ranks[i], settings, scheduler));
    std::cout << "submitted: " << submit(scheduler, script) << "  " << script.string() << '\n';
  }
  std::cout << "the last job to end writes the report; to write it again: hortator scale report " << folder.string()
            << '\n';
  return 0;
}

int begin_study(Growth growth, const Arguments& arguments) {
  const auto values = parse(arguments, with_text(scale_options(), "program"));
  if (values.contains("help")) return print_scale_help();
  const auto file = config_file_of(values);
  const auto settings = gather_settings(settings_from_flags(values, launching::Scope::job, own_flags()), file);
  const auto plan = plan_of(growth, values, settings);
  const auto folder = fs::absolute(values["out"].as<std::string>());
  if (fs::exists(folder / "plan.json")) {
    throw UsageError({.what = text::concat("A study already exists in ", text::quote(folder.string())),
                      .why = "the runs of two studies cannot be mixed",
                      .hint = "use another --out, or remove the folder"});
  }
  fs::create_directories(folder);
  write_plan(folder, plan);
  if (values.contains("submit")) return submit_jobs(folder, plan, values);
  make_runs(folder, plan, plan.ranks);
  return report_on(folder);
}

int strong(const Arguments& arguments) { return begin_study(Growth::strong, arguments); }
int weak(const Arguments& arguments) { return begin_study(Growth::weak, arguments); }

std::string folder_in(const Arguments& arguments, std::size_t count) {
  if (arguments.size() == count) return arguments.front();
  throw UsageError({.what = "The folder of a study is missing", .hint = "hortator scale report runs/scale"});
}

Options report_options() {
  Options options;
  options.named.add_options()("html", po::value<std::string>()->value_name("FILE"),
                              "write a page for a browser as well: one file, with curves to zoom into")(
      "help,h", "print this help");
  return options;
}

int report_again(const Arguments& arguments) {
  const auto values = parse(arguments, with_text(report_options(), "study"));
  if (values.contains("help")) return print_scale_help();
  const auto folders = values.contains("study") ? values["study"].as<Arguments>() : Arguments();
  const fs::path folder = folder_in(folders, 1);
  const int code = report_on(folder);
  if (values.contains("html")) {
    const auto page = values["html"].as<std::string>();
    write_file(page, scale_page(read_study(folder), core::unix_time()));
    std::cout << "page: " << page << '\n';
  }
  return code;
}

// Makes the runs of one size: what each job of a study starts.
int run_size(const Arguments& arguments) {
  const fs::path folder = folder_in(arguments, 2);
  const auto plan = read_plan(folder);
  const auto size = parse_counts(arguments.back(), "RANKS");
  if (std::ranges::find(plan.ranks, size.front()) == plan.ranks.end())
    throw UsageError({.what = text::concat("The study has no size of ", text::count(size.front(), "rank"))});
  make_runs(folder, plan, {size.front()});
  const auto points = read_points(folder, plan);
  const bool is_complete =
      points.size() == runs_of(plan).size() && (plan.ranks.back() == 1 || fs::exists(folder / collectives_file));
  return is_complete ? report_on(folder) : 0;
}

const std::vector<Verb>& verbs_of_scale() {
  static const std::vector<Verb> table = {
      {"strong", "the same total work on each number of ranks", strong},
      {"weak", "the same work for each rank", weak},
      {"report", "writes the report of a study again", report_again},
      {"run", "makes the runs of one size of a study; its jobs use it", run_size},
  };
  return table;
}

}  // namespace

int scale_verb(const Arguments& arguments) {
  if (arguments.empty())
    throw UsageError({.what = "The kind of scaling is missing", .hint = "valid kinds:\n" + listing(verbs_of_scale())});
  if (arguments.front() == "--help" || arguments.front() == "-h") return print_scale_help();
  return find(verbs_of_scale(), arguments.front(), "kind of scaling").run({arguments.begin() + 1, arguments.end()});
}

}  // namespace hortator::tools
