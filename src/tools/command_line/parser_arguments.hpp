#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "launch/settings/keys.hpp"
#include "tools/command_line/options.hpp"

namespace hortator::tools {

/// The options of a command line that set settings with one value. The last value of an option counts, as for Slurm.
class GivenSettings {
 public:
  struct Option {
    std::string typed;
    std::string value;
    std::size_t position = 0;  ///< where its argument is in the parser's list
  };

  /// Notes that `option` sets `flag`; returns the position of the argument that it replaces. Throws UsageError if
  /// another spelling has set it to another value.
  std::optional<std::size_t> add(const std::string& flag, Option option);

 private:
  std::map<std::string, Option> options_;
};

/// The arguments that Boost's parser gets: flags of settings, and what the verb itself understands. In an argument
/// `typed` is the option that the user typed, for messages.
class ParserArguments {
 public:
  ParserArguments(const Arguments& typed, const Options& options) : typed_(typed), options_(options) {}

  const Options& options() const { return options_; }

  /// The scheduler or launcher at hand. Detected only if it matters: that may need the settings files.
  launching::Dialect dialect();

  /// The verb's option of that name; null if there is none.
  const boost::program_options::option_description* find(const std::string& name) const;

  /// Whether the verb has the flag of that setting.
  bool has_flag(const launching::Key& key) const;

  /// Whether there is an argument that gives the flag a value.
  bool sets(std::string_view flag) const;

  /// Adds an argument as it is.
  void add(std::string argument) { list_.push_back(std::move(argument)); }

  /// Adds a flag without a value, once.
  void add_switch(const std::string& argument);

  /// Sets the setting. If a setting has one value, the last value of the same option counts. Throws UsageError if
  /// another option has set it to another value.
  void put(const launching::Key& key, const std::string& value, const std::string& typed);

  /// Checks the value, and sets the setting; reports that it has no effect if the verb does not have it. Throws
  /// UsageError for an invalid value.
  void set(std::string_view name, std::string value, const std::string& typed);

  /// Adds a value to a setting with many values.
  void add_to(std::string_view name, const std::string& value);

  /// Adds an option for srun if it starts the ranks; otherwise reports that it has no effect.
  void add_for_srun(const std::string& option, const std::string& typed);

  /// What a launch does with an option that asks for something of a job: `instead` is Synonym::at_launch. Throws
  /// UsageError for what the launch cannot do, and in a job.
  void add_at_launch(std::string_view instead, const std::string& value, const std::string& typed);

  /// Reports on standard error, once, that the option has no effect.
  void note(const std::string& typed, const std::string& why);

  Arguments take() && { return std::move(list_); }

 private:
  const Arguments& typed_;
  const Options& options_;
  std::optional<launching::Dialect> dialect_;
  std::set<std::string> noted_;
  GivenSettings given_;
  Arguments list_;
};

}  // namespace hortator::tools
