#pragma once

#include <hortator/error.hpp>
#include <string>
#include <vector>

#include "launch/settings/accelerate_names.hpp"
#include "launch/settings/file.hpp"
#include "launch/settings/settings.hpp"

/// Files of `accelerate config`.
namespace hortator::launching {

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

/// Translates such a file into settings of Hortator, as `accelerate launch` would understand it: a section has an
/// effect only if distributed_type selects it. Does not throw for any value: an unsupported one becomes a refused
/// remark.
AccelerateFile read_accelerate_file(const std::vector<ConfigEntry>& entries, const std::string& file);

/// Throws UsageError for the refused remarks, after `errors`: those that were found before. It names file, line and
/// key.
void throw_if_refused(const AccelerateFile& settings, const std::string& file, std::vector<UsageError> errors = {});

/// The remarks as a table, a line each: "mixed_precision   honoured".
std::string remark_table(const std::vector<AccelerateRemark>& remarks);

}  // namespace hortator::launching
