#include <iostream>

#include "tools/env/facts.hpp"
#include "tools/verbs.hpp"

namespace hortator::tools {
namespace {

Options known_options() {
  Options options;
  options.named.add_options()("json", "one JSON object in place of text")("help,h", "this text");
  return options;
}

}  // namespace

int env_verb(const Arguments& arguments) {
  const auto options = known_options();
  const auto values = parse(arguments, options);
  if (values.contains("help")) {
    std::cout << "usage: hortator env [--json]\n\nReports versions, machine and environment, fit for a bug report.\n\n"
                 "  hortator env --json >report.json\n\nexit code: 0; 2 wrong usage\n\n"
              << options.named;
    return 0;
  }
  const auto report = env::gather_facts();
  std::cout << (values.contains("json") ? env::for_programs(report).dump() + "\n" : env::for_people(report));
  return 0;
}

}  // namespace hortator::tools
