#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

/// Programs on this machine.
namespace hortator::tools {

/// Where a shell would find it: a name with a slash as it stands, any other on PATH. Nothing when there is no such
/// executable file.
std::optional<std::filesystem::path> find_program(const std::string& name);

/// The first lines of what it prints on standard output; empty when it cannot be run.
std::string output_of(const std::string& command);

/// What a command printed, errors included, and its exit code.
struct Result {
  int code = 0;
  std::string output = "";
};
Result result_of(const std::string& command);

/// What belongs to this command, found from where it lies itself, so that an installation may be moved: templates and
/// profiles, and the programs that do what needs LibTorch or MPI.
std::filesystem::path data_folder();
std::filesystem::path libexec_folder();

/// Becomes `words`. Returns only by an Error.
[[noreturn]] void become(const std::vector<std::string>& words);

}  // namespace hortator::tools
