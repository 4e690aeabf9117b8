#pragma once

#include <map>
#include <string>
#include <string_view>

#include "launch/settings/accelerate_names.hpp"
#include "launch/settings/accelerate_sharding.hpp"
#include "tools/command_line/argument_reader.hpp"
#include "tools/command_line/parser_arguments.hpp"

namespace hortator::tools {

/// Options of `accelerate launch`, as flags of settings. Those of FSDP and DeepSpeed depend on each other, and are
/// translated when all are known: call finish() after the last option.
class AccelerateOptions {
 public:
  AccelerateOptions(ArgumentReader& reader, ParserArguments& arguments) : reader_(reader), arguments_(arguments) {}

  /// Adds the flag that the option stands for, or keeps the option for finish(). Throws UsageError if it is refused.
  void take(const launching::AccelerateName& row, const TypedOption& option);

  /// Notes a stage that DeepSpeed has, on which other options depend.
  void note_stage(const std::string& stage, const std::string& typed);

  /// Adds the flags that the options of FSDP, DeepSpeed and Megatron-LM stand for. Throws UsageError if one is refused.
  void finish();

 private:
  bool is_unused(const launching::AccelerateName& row, const TypedOption& option) const;
  void select_sharding(std::string& chosen, const std::string& typed);
  void keep(const launching::AccelerateName& row, const TypedOption& option);
  void put(const launching::AccelerateName& row, const TypedOption& option);
  void refuse_second_axis(const launching::AccelerateName& row, const std::string& typed);
  bool is_any_kept(std::string_view prefix) const;
  std::string stage_of(const launching::SettingValue& stage) const;
  void add_plan(const launching::ShardingPlan& plan);

  ArgumentReader& reader_;
  ParserArguments& arguments_;
  launching::AccelerateValues kept_;
  std::string fsdp_;                              ///< as typed, if it is selected
  std::string deepspeed_;                         ///< as typed, if it is selected
  std::string megatron_;                          ///< as typed, if it is selected
  std::map<std::string_view, std::string> axes_;  ///< the first option that set a key
};

}  // namespace hortator::tools
