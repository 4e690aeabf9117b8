#pragma once

#include <string>
#include <vector>

#include "core/text/page.hpp"
#include "observe/status/status_record.hpp"

/// What all ranks of a run have in common, and who falls out of line.
namespace hortator::tools {

/// "36 s", "1 min 41 s"
std::string ago(double seconds);

/// It should have told of itself long since.
bool is_silent(const observe::RankStatus& rank, double now);

/// The ranks that the others wait for: those that wait much less for others than most do, the slowest first.
std::vector<observe::RankStatus> slowest(const std::vector<observe::RankStatus>& ranks);

/// Rows of memory, devices, CPUs, gradients and data: the mean, and who has the most or the least. `ranks` is not
/// empty.
void put_use(core::Page& page, const std::vector<observe::RankStatus>& ranks);

/// Rows of the slow and of the silent, where there are any.
void put_stragglers(core::Page& page, const std::vector<observe::RankStatus>& ranks, double now);

}  // namespace hortator::tools
