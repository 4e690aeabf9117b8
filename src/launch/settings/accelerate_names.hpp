#pragma once

#include <hortator/error.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "launch/settings/file.hpp"
#include "launch/settings/settings.hpp"

/// Settings of Hugging Face Accelerate that Hortator understands: its flags and its default_config.yaml.
namespace hortator::launching {

enum class Support {
  honoured,  ///< works as in Accelerate
  noted,     ///< accepted without effect
  refused,   ///< an error when it is used
};

/// Where Accelerate uses the name: as a flag of `accelerate launch`, as a key of a file, or both.
enum class NameSource { flag, file, both };

struct AccelerateName {
  std::string_view name;
  NameSource source = NameSource::both;
  Support support = Support::noted;
  std::string_view key = "";   ///< the key of Hortator with the same meaning; empty: none
  std::string_view text = "";  ///< what Hortator does instead, or the alternative
};

std::span<const AccelerateName> accelerate_names();

/// How one line of a file is treated.
struct AccelerateRemark {
  std::string key = "";
  int line = 0;
  Support support = Support::noted;
  std::string text = "";
};

struct AccelerateFile {
  Layer layer = {};
  std::vector<AccelerateRemark> remarks = {};  ///< one per entry
};

/// Whether a file with these entries comes from `accelerate config`.
bool is_accelerate_file(const std::vector<ConfigEntry>& entries);

/// Translates such a file into settings of Hortator. Does not throw for any value: an unsupported one becomes a refused
/// remark.
AccelerateFile read_accelerate_file(const std::vector<ConfigEntry>& entries, const std::string& file);

/// Throws UsageError for the refused remarks, after `errors`: those that were found before. It names file, line and
/// key.
void throw_if_refused(const AccelerateFile& settings, const std::string& file, std::vector<UsageError> errors = {});

/// The remarks as a table, a line each: "mixed_precision   honoured".
std::string remark_table(const std::vector<AccelerateRemark>& remarks);

/// "honoured", "noted" or "refused".
std::string_view name_of(Support support);

/// The row of a flag of `accelerate launch`, such as "num_processes"; null for any other name.
const AccelerateName* accelerate_flag(std::string_view name);

/// Whether a flag that Hortator accepts without effect has no value.
bool is_accelerate_switch(std::string_view name);

/// Whether Accelerate's value means that the feature is not used: "none", "1", "false".
bool is_unused_in_accelerate(const std::string& value);

/// The value of Accelerate as a value of row.key; nothing for an unsupported one.
std::optional<std::string> value_from_accelerate(const AccelerateName& row, const std::string& value);

}  // namespace hortator::launching
