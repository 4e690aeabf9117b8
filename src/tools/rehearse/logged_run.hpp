#pragma once

#include <filesystem>
#include <string>
#include <vector>

/// Programs that a tool runs for what they leave behind.
namespace hortator::tools {

/// Runs a command to its end with its output in a file, and returns its exit code.
int run_logged(const std::vector<std::string>& command, const std::filesystem::path& log);

/// The last lines of a program's output, without empty ones at its end.
std::string end_of_output(const std::string& output);

/// This program, by its path.
std::string own_program();

}  // namespace hortator::tools
