#include <iostream>

#include "tools/verbs.hpp"

namespace hortator::tools {

// The script completes from the output of --help, so that it is always up to date.
int completion_verb(const Arguments& arguments) {
  Options options;
  options.named.add_options()("help,h", "print this help");
  const auto values = parse(arguments, options);
  if (values.contains("help")) {
    std::cout << "usage: hortator completion\n\nPrints a script that makes bash complete verbs and options:\n\n"
                 "  eval \"$(hortator completion)\"     (in ~/.bashrc)\n\nexit code: 0\n\n"
              << options.named;
    return 0;
  }
  std::cout << R"(_hortator() {
  local word=${COMP_WORDS[COMP_CWORD]} words
  if [ "$COMP_CWORD" = 1 ]; then
    words=$(hortator --help 2>/dev/null | sed -n 's/^  \([a-z-]*\) .*/\1/p')
  elif [[ $word == -* ]]; then
    words=$(hortator "${COMP_WORDS[1]}" --help 2>/dev/null | sed 's/ -- .*//' | grep -oE -- '--[a-z][a-z_-]*' | sort -u)
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
