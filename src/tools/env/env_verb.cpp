#include <iostream>

#include "tools/env/facts.hpp"
#include "tools/verbs.hpp"

namespace hortator::tools {
namespace {

Options env_options() {
  Options options;
  options.named.add_options()("json", "print one JSON object instead of text")("help,h", "print this help");
  return options;
}

}  // namespace

int env_verb(const Arguments& arguments) {
  const auto options = env_options();
  const auto values = parse(arguments, options);
  if (values.contains("help")) {
    std::cout << "usage: hortator env [--json]\n\nPrints versions, machine and environment for a bug report.\n\n"
                 "  hortator env --json >report.json\n\nexit code: 0; 2 wrong usage\n\n"
              << options.named;
    return 0;
  }
  const auto report = env::gather_facts();
  std::cout << (values.contains("json") ? env::to_json(report).dump() + "\n" : env::to_text(report));
  return 0;
}

}  // namespace hortator::tools
