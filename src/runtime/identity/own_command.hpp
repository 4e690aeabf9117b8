#pragma once

#include <filesystem>
#include <string>
#include <vector>

/// Commands that a program starts to run itself again.
namespace hortator::runtime {

/// This program, by its path, and its arguments.
std::vector<std::string> own_arguments();

/// The command `hortator` of this installation; its name, for PATH, where it is not beside the library or the program.
std::string hortator_command();

/// Files for what a command prints; those of this process where they are empty.
struct Output {
  std::filesystem::path text = {};
  std::filesystem::path errors = {};
};

/// Runs a command to its end, with exactly these variables, and returns its exit code: 128 + the signal that ended it.
/// Throws Error if it cannot be started.
int run_to_end(const std::vector<std::string>& command, const std::vector<std::string>& variables,
               const Output& output = {});

/// "NAME=value" of all variables of this process.
std::vector<std::string> own_environment();
/// The same for a program outside of this run: without what launchers of MPI, and Hortator, say of this one.
std::vector<std::string> environment_outside_run();

}  // namespace hortator::runtime
