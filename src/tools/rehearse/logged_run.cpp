#include "tools/rehearse/logged_run.hpp"

#include "core/text/text.hpp"
#include "launch/job/quote.hpp"
#include "tools/launch/supervise.hpp"

namespace hortator::tools {

namespace fs = std::filesystem;

int run_logged(const std::vector<std::string>& command, const fs::path& log) {
  const std::vector<std::string> shell = {
      "/bin/sh", "-c",
      "exec " + launching::shell_line(command) + " >" + launching::shell_quote(log.string()) + " 2>&1 </dev/null"};
  return supervise(shell).code;
}

std::string end_of_output(const std::string& output) {
  constexpr std::size_t lines_shown = 20;
  auto lines = text::split(output, '\n');
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  if (lines.size() > lines_shown) lines.erase(lines.begin(), lines.end() - lines_shown);
  return text::join(lines, "\n");
}

std::string own_program() { return fs::read_symlink("/proc/self/exe").string(); }

}  // namespace hortator::tools
