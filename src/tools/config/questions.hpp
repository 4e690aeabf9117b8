#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "launch/settings/settings.hpp"

namespace hortator::tools {

/// One question of `hortator config`.
struct Question {
  std::string key = "";
  std::string text = "";
  std::string found = "";  ///< the detected default, used for an empty answer; empty: the key is left out
  bool is_guess = false;  ///< not of this machine, so that only the user may confirm it: a file outranks a site profile
  /// Whether the question is asked after these answers; empty: always.
  std::function<bool(const launching::Layer& answers)> applies = {};
};

/// The questions for this machine, with defaults detected from it and its scheduler.
std::vector<Question> questions();

/// Asks each question until the answer is valid. Throws Error when the input ends early.
launching::Layer ask(const std::vector<Question>& questions, std::istream& in, std::ostream& out);

/// The questions with the settings in a file as the defaults of their answers.
std::vector<Question> with_defaults(std::vector<Question> questions, const launching::Layer& file);

/// The detected defaults as answers, without guesses.
launching::Layer found_answers(const std::vector<Question>& questions);

}  // namespace hortator::tools
