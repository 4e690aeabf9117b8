#include <hortator/error.hpp>
#include <iostream>

#include "core/text/text.hpp"
#include "tools/verbs.hpp"

namespace hortator::tools {
namespace {

namespace po = boost::program_options;

void check_shell(const std::string& shell) {
  if (shell == "bash") return;
  throw UsageError({.what = "Expected bash, got " + text::quote(shell),
                    .why = "there is a script for bash only",
                    .hint = "hortator completion bash"});
}

}  // namespace

// The script completes from the output of --help, so that it is always up to date.
int completion_verb(const Arguments& arguments) {
  Options options;
  options.named.add_options()("shell", po::value<std::string>()->default_value("bash")->value_name("NAME"),
                              "the shell: bash")("help,h", "print this help");
  options.positional.add("shell", 1);
  const auto values = parse(arguments, options);
  if (values.contains("help")) {
    std::cout << "usage: hortator completion [bash]\n\nPrints a script that makes bash complete verbs and options:\n\n"
                 "  eval \"$(hortator completion)\"     (in ~/.bashrc)\n\nexit code: 0; 2 wrong usage\n\n"
              << options.named;
    return 0;
  }
  check_shell(values["shell"].as<std::string>());
  std::cout << R"(_hortator() {
  local word=${COMP_WORDS[COMP_CWORD]} words
  if [ "$COMP_CWORD" = 1 ]; then
    words=$(hortator --help 2>/dev/null | sed -n 's/^  \([a-z-]*\) .*/\1/p')
  elif [[ $word == -* ]]; then
    words=$(hortator "${COMP_WORDS[1]}" --help 2>/dev/null | sed 's/ -- .*//' | grep -oE -- '--[a-z][a-z0-9_-]*' | sort -u)
  else
    return
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o default -F _hortator hortator
)";
  return 0;
}

}  // namespace hortator::tools
