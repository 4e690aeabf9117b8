#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "launch/settings/settings.hpp"

namespace hortator::tools {

/// One thing that `hortator config` asks.
struct Question {
  std::string key = "";
  std::string text = "";
  std::string found = "";  ///< what holds for an empty answer; empty: nothing is said then
};

/// What matters on this machine, with what was found on it and in its scheduler.
std::vector<Question> questions();

/// Asks until each answer is one that the key can have. Error when the answers end early.
launching::Layer ask(const std::vector<Question>& questions, std::istream& in, std::ostream& out);

/// The answers to be had without asking.
launching::Layer found_answers(const std::vector<Question>& questions);

}  // namespace hortator::tools
