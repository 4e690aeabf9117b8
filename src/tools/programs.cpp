#include "tools/programs.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <hortator/error.hpp>
#include <memory>

#include "core/environment/environment.hpp"
#include "core/environment/mpi_family.hpp"
#include "core/text/text.hpp"

namespace hortator::tools {
namespace {

bool is_executable(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0;
}

std::filesystem::path own_prefix() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path();
}

}  // namespace

std::optional<std::filesystem::path> find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    return is_executable(name) ? std::optional<std::filesystem::path>(name) : std::nullopt;
  }
  for (const auto& directory : text::split(core::variable("PATH").value_or(""), ':')) {
    const auto candidate = std::filesystem::path(directory.empty() ? "." : directory) / name;
    if (is_executable(candidate)) return candidate;
  }
  return std::nullopt;
}

std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen((command + " 2>/dev/null").c_str(), "r"), pclose);
  if (!pipe) return "";
  std::string output;
  std::array<char, 4096> buffer{};
  for (std::size_t count = 0; (count = std::fread(buffer.data(), 1, buffer.size(), pipe.get())) > 0;)
    output.append(buffer.data(), count);
  return output;
}

CommandResult run_command(const std::string& command) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return {1, std::strerror(errno)};
  CommandResult result;
  std::array<char, 4096> buffer{};
  for (std::size_t count = 0; (count = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    result.output.append(buffer.data(), count);
  }
  const int status = pclose(pipe);
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  return result;
}

std::filesystem::path data_folder() { return own_prefix() / HORTATOR_DATA_FOLDER; }

std::filesystem::path library_folder() { return own_prefix() / HORTATOR_LIB_FOLDER; }

std::filesystem::path verb_program(const std::string& verb) {
  const auto folder = own_prefix() / HORTATOR_LIBEXEC_FOLDER;
  const auto name = "hortator-" + verb;
  const auto family = core::mpi_family_of_launcher(core::process_variables());
  const auto of_family = folder / family / name;
  return !family.empty() && is_executable(of_family) ? of_family : folder / name;
}

void replace_process(const std::vector<std::string>& command) {
  std::vector<char*> pointers;
  for (const auto& argument : command) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  execvp(pointers.front(), pointers.data());
  throw Error({.what = text::concat(text::quote(command.front()), " could not be started: ", std::strerror(errno))});
}

void replace_child(const std::vector<std::string>& command) noexcept {
  constexpr int not_started = 127;
  try {
    replace_process(command);
  } catch (const std::exception& error) {
    const auto line = text::concat("hortator: ", error.what(), '\n');
    [[maybe_unused]] const auto written = write(STDERR_FILENO, line.data(), line.size());
  }
  _exit(not_started);
}

}  // namespace hortator::tools
