#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

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

/// "honoured", "noted" or "refused".
std::string_view name_of(Support support);

/// The row of a flag of `accelerate launch`, such as "num_processes"; null for any other name.
const AccelerateName* accelerate_flag(std::string_view name);

/// The row of a key of Accelerate's files, such as "fsdp_version"; null for any other name.
const AccelerateName* accelerate_key(std::string_view name);

/// Whether the name is the size of an axis of Accelerate's ParallelismConfig. A size of 1 sets nothing.
bool is_accelerate_axis(const AccelerateName& row);

/// Whether a flag that Hortator accepts without effect has no value.
bool is_accelerate_switch(std::string_view name);

/// Whether Accelerate's value means that the feature of the row is not used: "none", "false", and 1 for a degree of
/// parallelism.
bool is_unused_in_accelerate(const AccelerateName& row, const std::string& value);

/// Whether the row's values are those of row.key, so that the name may stand for it in a file of Hortator.
bool has_same_values(const AccelerateName& row);

/// The value of Accelerate as a value of row.key; nothing for an unsupported one.
std::optional<std::string> value_from_accelerate(const AccelerateName& row, std::string value);

}  // namespace hortator::launching
