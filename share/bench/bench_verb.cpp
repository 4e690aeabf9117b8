#include <algorithm>
#include <hortator/error.hpp>
#include <iostream>

#include "bench/machine.hpp"
#include "bench/measurements.hpp"
#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "tools/passing_run.hpp"
#include "tools/verbs.hpp"

namespace hortator::bench {
namespace {

namespace po = boost::program_options;

tools::Options known_options() {
  tools::Options options;
  const Plan plan;
  options.named.add_options()("json", "print one JSON object per line instead of a table")(
      "blocks", po::value<int>()->default_value(plan.blocks)->value_name("N"), "timed blocks of each side")(
      "steps", po::value<int>()->default_value(plan.steps)->value_name("N"), "maximum number of steps in a block")(
      "case", po::value<std::vector<std::string>>()->composing()->value_name("NAME"),
      "only this operation, workload or way of reading (repeatable)")(
      "size", po::value<std::vector<std::string>>()->composing()->value_name("BYTES"),
      "size of the buffer (collectives), the state (checkpoint), the model (weights) or the layers (paging), such as "
      "64MiB (repeatable)")("type", po::value<std::vector<std::string>>()->composing()->value_name("TYPE"),
                            "collectives: float32, bfloat16, ... (repeatable)")(
      "backend", po::value<std::vector<std::string>>()->composing()->value_name("NAME"),
      "collectives: node or mpi (repeatable)")(
      "reference", po::value<std::vector<std::string>>()->composing()->value_name("NAME"),
      "collectives: memcpy, MPI or 'raw exchange' (repeatable)")("help,h", "print this help");
  return options;
}

std::string listing() {
  std::vector<tools::Verb> rows;
  for (const auto& measurement : measurements()) rows.push_back({measurement.name, measurement.summary, nullptr});
  rows.push_back({"machine", "memory, rates and links, as the file that hortator plan --machine reads", nullptr});
  return tools::listing(rows);
}

int print_help() {
  std::cout << "usage: hortator bench VERB [options]\n\n"
               "Runs a benchmark on one rank, or on N ranks by `hortator launch -n N hortator bench VERB`.\n"
               "Blocks of Hortator and of the baseline alternate. ratio = time of Hortator / time of the baseline:\n"
               "the median over neighbouring blocks, and its 95 % confidence interval (with 6 blocks or more).\n\n"
               "  hortator bench step\n"
               "  hortator launch -n 2 hortator bench collectives --case all_reduce --json\n"
               "  hortator launch --nodes 2 --ranks-per-node 8 hortator bench machine > machine.json\n\n"
            << listing() << "\nexit code: 0 measured; 1 an error; 2 wrong usage\n\n"
            << known_options().named;
  return 0;
}

const Measurement& find_measurement(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& measurement : measurements()) {
    if (measurement.name == name) return measurement;
    names.push_back(measurement.name);
  }
  throw UsageError({.what = "Unknown bench verb " + text::quote(name), .hint = text::suggestion(name, names)});
}

int at_least_one(const po::variables_map& values, const char* name) {
  const int value = values[name].as<int>();
  if (value < 1)
    throw UsageError({.what = text::concat("--", name, ": expected a whole number from 1, got '", value, "'")});
  return value;
}

std::vector<std::string> list(const po::variables_map& values, const char* name) {
  return values.contains(name) ? values[name].as<std::vector<std::string>>() : std::vector<std::string>{};
}

Selection selection_of(const po::variables_map& values) {
  Selection selection{.cases = list(values, "case"),
                      .types = list(values, "type"),
                      .backends = list(values, "backend"),
                      .references = list(values, "reference")};
  for (const auto& size : list(values, "size")) {
    selection.sizes.push_back(static_cast<std::int64_t>(units::parse_bytes(size)));
  }
  return selection;
}

void print(const std::vector<Result>& results, bool as_json) {
  if (!as_json) {
    std::cout << table(results);
  } else {
    for (const auto& result : results) std::cout << json_line(result) << "\n";
  }
}

// Prints the machine file. Takes no options but --help.
int machine_file(const tools::Arguments& arguments) {
  tools::Options none;
  none.named.add_options()("help,h", "print this help");
  if (tools::parse(arguments, none).contains("help")) return print_help();
  return tools::run_temporarily("hortator-bench", ".", [](const auto&, const auto& folder) {
    Accelerator accelerator;
    const auto machine = measure_machine(accelerator, folder);
    if (accelerator.is_main_process()) std::cout << planning::to_json(machine);
  });
}

int bench_verb(const tools::Arguments& arguments) {
  if (arguments.empty()) throw UsageError({.what = "The bench verb is missing", .hint = "valid verbs: " + listing()});
  if (arguments.front() == "--help" || arguments.front() == "-h") return print_help();
  if (arguments.front() == "machine") return machine_file({arguments.begin() + 1, arguments.end()});
  const auto& measurement = find_measurement(arguments.front());
  const auto values = tools::parse({arguments.begin() + 1, arguments.end()}, known_options());
  if (values.contains("help")) return print_help();

  Plan plan = {.blocks = at_least_one(values, "blocks"), .steps = at_least_one(values, "steps")};
  const auto selection = selection_of(values);
  return tools::run_temporarily("hortator-bench", ".", [&](const auto&, const auto& folder) {
    plan.folder = folder;
    Accelerator accelerator;
    const auto results = measurement.run(accelerator, plan, selection);
    if (accelerator.is_main_process()) print(results, values.contains("json"));
  });
}

}  // namespace
}  // namespace hortator::bench

int main(int argc, char** argv) { return hortator::tools::run_guarded(argc, argv, hortator::bench::bench_verb); }
