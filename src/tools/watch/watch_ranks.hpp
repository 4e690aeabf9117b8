#pragma once

#include <string>
#include <vector>

#include "core/text/terminal.hpp"
#include "observe/status/rank_facts.hpp"
#include "observe/status/status_record.hpp"

/// A summary of all ranks of a run, and its outliers.
namespace hortator::tools {

/// "36 s", "1 min 41 s"
std::string ago(double seconds);

/// Adds rows for memory, devices, CPUs, gradients, data and energy: the mean, and the rank with the extreme value.
/// `ranks` must not be empty.
void put_use(core::Page& page, const std::vector<observe::RankStatus>& ranks);

/// Adds rows for slow and silent ranks, if there are any.
void put_stragglers(core::Page& page, const std::vector<observe::RankStatus>& ranks, double now);

}  // namespace hortator::tools
