#pragma once

#include <string>
#include <string_view>

#include "core/environment/environment.hpp"

namespace hortator::runtime {

/// The name of a shared object of this job, for administrators: "hortator-<job>.<step>-<what>". Under PBS the run
/// stands in place of the step; outside jobs the name has the run only.
std::string shared_name(std::string_view what, const core::Variables& variables = core::process_variables());

}  // namespace hortator::runtime
