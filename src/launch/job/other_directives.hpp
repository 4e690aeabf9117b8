#pragma once

#include "launch/job/directive_values.hpp"

/// The scheduler's lines of a script, without their prefix. They throw UsageError for settings that it cannot fulfil.
namespace hortator::launching {

DirectiveLines flux_directives(const Job& job);
DirectiveLines lsf_directives(const Job& job);
DirectiveLines grid_engine_directives(const Job& job);

}  // namespace hortator::launching
