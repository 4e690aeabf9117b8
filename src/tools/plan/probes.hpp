#pragma once

#include <map>
#include <string>
#include <vector>

#include "planning/cost.hpp"
#include "tools/rehearse/rehearsed_rank.hpp"

namespace hortator::tools {

/// What rehearsals of a few small runs say of a program.
struct Probed {
  planning::ModelFacts facts;
  planning::Choices possible;                       ///< which settings the program can use
  std::map<std::string, std::string> why_not = {};  ///< by setting: the program's error
};

/// Rehearses the program on one rank and on two along each axis. Throws Error where it fails on one rank.
Probed probe(const std::vector<std::string>& command, bool is_16bit);

/// The line of a program's output that says why it failed, or the last one. Pure.
std::string last_error(const std::string& output);

/// What a rehearsal of a candidate says of its update and memory. Pure.
planning::Work work_in(const nlohmann::ordered_json& report);
planning::MemoryCost memory_in(const nlohmann::ordered_json& report);

}  // namespace hortator::tools
