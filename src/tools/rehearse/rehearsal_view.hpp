#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/rehearse/rehearsed_rank.hpp"

/// What a rehearsal has shown, for people and programs. Pure.
namespace hortator::tools {

/// Whether a rank has failed, has made no update, or needs more than `memory` bytes (0: any number is fine).
bool is_bad(const RehearsedRank& rank, std::uint64_t memory);

std::string rehearsal_text(const RehearsalPlan& plan, const std::vector<RehearsedRank>& ranks, std::uint64_t memory);
std::string rehearsal_json(const RehearsalPlan& plan, const std::vector<RehearsedRank>& ranks, std::uint64_t memory);

}  // namespace hortator::tools
