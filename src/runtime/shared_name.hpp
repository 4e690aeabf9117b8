#pragma once

#include <string>
#include <string_view>

#include "core/environment/environment.hpp"

namespace hortator::runtime {

/// What a shared object of this job is called where administrators see it: "hortator-<job>.<step>-<what>", under PBS
/// with the run in place of a step, without a job with the run alone.
std::string shared_name(std::string_view what, const core::Variables& variables = core::process_variables());

}  // namespace hortator::runtime
