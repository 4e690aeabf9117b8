#pragma once

#include "launch/settings/synonyms.hpp"
#include "tools/command_line/argument_reader.hpp"
#include "tools/command_line/parser_arguments.hpp"

namespace hortator::tools {

/// Options of Slurm, PBS and mpirun, as flags of settings.
class SynonymOptions {
 public:
  SynonymOptions(ArgumentReader& reader, ParserArguments& arguments) : reader_(reader), arguments_(arguments) {}

  /// Whether the verb has what the synonym stands for.
  bool is_known(const launching::Synonym& synonym) const;

  /// What a short option means here; null if it is no synonym, so that the verb may have one of that name.
  const launching::Synonym* find_short(const std::string& argument);

  /// Adds the flags that the option stands for. Throws UsageError if it is refused, or an option of another scheduler.
  void take(const launching::Synonym& synonym, const TypedOption& option);

 private:
  bool is_out_of_place(const launching::Synonym& synonym);
  bool names_resource(const TypedOption& option) const;
  void check_scheduler(const launching::Synonym& synonym, const std::string& typed);
  std::string value_of(const launching::Synonym& synonym, const TypedOption& option);
  void take_value(const launching::Synonym& synonym, const std::string& typed, const std::string& value);
  void take_setting(const launching::Synonym& synonym, const std::string& typed, const std::string& value);
  void take_directive(const launching::Synonym& synonym, const std::string& typed, const std::string& value);
  void take_line(const launching::Synonym& synonym, const std::string& typed, const std::string& line);
  void take_launcher_option(const launching::Synonym& synonym, const std::string& typed, const std::string& value);
  void take_resources(const std::string& typed, const std::string& value);
  void take_gres(const std::string& typed, const std::string& value);
  void take_variables(const launching::Synonym& synonym, const std::string& typed, std::string value);

  bool is_launch() const { return arguments_.options().is_launch; }

  ArgumentReader& reader_;
  ParserArguments& arguments_;
};

}  // namespace hortator::tools
