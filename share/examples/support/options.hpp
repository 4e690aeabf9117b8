#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace example {

/// The options of an example: `--name value`, `--name=value`, or `--name` for a flag. Ask for each option first, then
/// call help(). Values that cannot be used throw hortator::UsageError, which ends the program with code 2.
class Options {
 public:
  Options(int argc, const char* const* argv, std::string program, std::string purpose);

  /// A whole number from `lowest` on.
  std::int64_t number(const std::string& name, std::int64_t value, const std::string& help, std::int64_t lowest = 1);
  double real(const std::string& name, double value, const std::string& help);
  std::string text(const std::string& name, const std::string& value, const std::string& help);
  /// Any number of values: `--text a.txt b.txt`.
  std::vector<std::string> texts(const std::string& name, const std::string& help);
  /// One of these texts.
  std::string choice(const std::string& name, const std::vector<std::string>& choices, const std::string& help);
  /// Throws UsageError if an option that must be given was not.
  std::string required(const std::string& name, const std::string& help);
  bool flag(const std::string& name, const std::string& help);
  /// The option --run-dir: the folder of the run's logs and checkpoints.
  std::filesystem::path run_dir();

  /// Prints the options and returns true if --help was given. Throws UsageError for an argument that is not an option.
  bool help() const;

 private:
  bool take(const std::string& name, std::string& value);
  void describe(const std::string& usage, const std::string& help);

  std::vector<std::string> rest_;  ///< arguments that no option has taken yet
  std::string program_, purpose_;
  std::vector<std::pair<std::string, std::string>> described_ = {};
};

}  // namespace example
