#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

/// Programs on this machine.
namespace hortator::tools {

/// Finds a program as a shell does: a name with a slash is a path, any other is searched on PATH. Returns nothing if
/// there is no such executable file.
std::optional<std::filesystem::path> find_program(const std::string& name);

/// A command's standard output; empty if it cannot be run.
std::string output_of(const std::string& command);

/// The exit code of a command, and its output with standard error.
struct CommandResult {
  int code = 0;
  std::string output = "";
};
CommandResult run_command(const std::string& command);

/// Folders of this installation, relative to the running program, so that an installation can be moved: data (templates
/// and site profiles), and the programs of the verbs that need LibTorch or MPI.
std::filesystem::path data_folder();
/// The program of a verb, of the build for the MPI that has started this process.
std::filesystem::path verb_program(const std::string& verb);
std::filesystem::path library_folder();

/// Replaces this process by `command` (exec). Throws Error if it cannot be started.
[[noreturn]] void replace_process(const std::vector<std::string>& command);

/// The same in a child of fork(): if `command` cannot be started, the child says so and exits with 127, as a shell's.
[[noreturn]] void replace_child(const std::vector<std::string>& command) noexcept;

}  // namespace hortator::tools
