#include <cmath>
#include <hortator/error.hpp>
#include <iostream>

#include "core/text/text.hpp"
#include "tools/compare/comparison_view.hpp"
#include "tools/compare/run_comparison.hpp"
#include "tools/verbs.hpp"

namespace hortator::tools {
namespace {

namespace po = boost::program_options;

// Sums of some thousand terms, in another order.
constexpr double usual_rounding = 64;

Options compare_runs_options() {
  Options options;
  options.named.add_options()("rounding", po::value<double>()->default_value(usual_rounding)->value_name("UNITS"),
                              "how much of a norm is rounding: units of its type's precision")(
      "list", po::value<int>()->default_value(0)->value_name("N"), "list the first N differences as well")(
      "json", "print all differences as JSON")("help,h", "print this help");
  return options;
}

int print_compare_runs_help() {
  std::cout
      << "usage: hortator compare-runs A B [options]\n\n"
         "Compares the operators of one step of two runs, and names the first that computes something else. A and B\n"
         "are folders of records. Record a step with\n\n"
         "  hortator launch -n 1 --record-operators runs/one ./train     (--record-step N: another than the first)\n"
         "  hortator launch -n 2 --record-operators runs/two ./train\n"
         "  hortator compare-runs runs/one runs/two\n\n"
         "or in a Python program with share/hortator/python/record_operators.py. Operators are aligned by module,\n"
         "name and number of the call. Where the runs have other meshes, the parts of all ranks are compared\n"
         "together.\n\n"
         "exit code: 0 no difference, 1 a difference, or no operator in both, 2 wrong usage\n\n"
      << compare_runs_options().named;
  return 0;
}

}  // namespace

int compare_runs_verb(const Arguments& arguments) {
  const auto values = parse(arguments, with_text(compare_runs_options(), "run"));
  if (values.contains("help")) return print_compare_runs_help();
  const auto names = values.contains("run") ? values["run"].as<std::vector<std::string>>() : std::vector<std::string>();
  if (names.size() != 2) {
    throw UsageError({.what = text::concat("Expected two folders of recorded steps, got ", names.size()),
                      .hint = "hortator compare-runs runs/one runs/two"});
  }
  const auto rounding = values["rounding"].as<double>();
  if (!std::isfinite(rounding) || rounding < 0)
    throw UsageError({.what = text::concat("--rounding: expected a number from 0, got ", rounding)});
  const auto a = read_run_record(names[0]);
  const auto b = read_run_record(names[1]);
  const auto comparison = compare(a, b, rounding);
  const ComparedRuns runs{.name_a = names[0], .name_b = names[1], .a = a, .b = b, .comparison = comparison};
  std::cout << (values.contains("json")
                    ? comparison_json(runs)
                    : comparison_view(runs, static_cast<std::size_t>(std::max(values["list"].as<int>(), 0))));
  const bool is_compared = !comparison.alignment.both.empty();
  return is_compared && comparison.first(TensorVerdict::order) == nullptr ? 0 : 1;
}

}  // namespace hortator::tools
