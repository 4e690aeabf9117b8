#pragma once

#include <hortator/training/accelerator_options.hpp>
#include <string>
#include <string_view>

#include "core/environment/setting_key.hpp"
#include "core/text/text.hpp"

/// The options of an Accelerator, one by one, from the rows of core/environment/program_options.inc.
namespace hortator::accelerator {

/// Whether the ranks of a run must set an option alike.
enum class Agreement { common, local };

/// What reads the variable of an option: launched(), by the option's type, or a function of the option's own.
enum class OptionReader { table, own };

/// A row of the table.
template <Agreement of_ranks, OptionReader of_variable>
struct OptionRow {
  static constexpr auto agreement = of_ranks;
  static constexpr auto reader = of_variable;

  std::string_view name;          ///< the path of its member: "zero.int8_gathers"
  std::string_view setting = "";  ///< the name of its key in core::program_settings(); empty if it has none

  /// Returns the name for messages: "zero.int8_gathers (HORTATOR_INT8_GATHERS)".
  std::string text() const {
    if (setting.empty()) return std::string(name);
    return text::concat(name, " (", core::variable_of(core::program_setting(setting)), ')');
  }
};

/// Calls `visit(row, value)` for each option; `value` refers to the option in `options`.
template <typename Options, typename Visit>
void visit_options(Options& options, Visit&& visit) {
#define PROGRAM_OPTION(member, agreement) \
  visit(OptionRow<Agreement::agreement, OptionReader::own>{#member}, options.member);
#define LAUNCH_OPTION(member, agreement, reader, key, ...) \
  visit(OptionRow<Agreement::agreement, OptionReader::reader>{#member, #key}, options.member);
#include "core/environment/program_options.inc"
}

}  // namespace hortator::accelerator
