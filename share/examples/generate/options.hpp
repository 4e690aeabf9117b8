#pragma once

#include <cstdint>
#include <filesystem>
#include <hortator/training/answers.hpp>
#include <string>

#include "../gpt/model.hpp"

namespace generate {

struct Options {
  std::filesystem::path prompts = {};  ///< a prompt a line
  std::filesystem::path answers = {};  ///< an answer a line
  gpt::ModelOptions model;
  std::filesystem::path weights = {};  ///< of the model; empty: random ones
  double memory = 0;                   ///< bytes of the host's memory that the model may take; 0: what there is
  std::int64_t max_bytes = 64;         ///< of an answer
  hortator::AnswerOptions answering;
  std::uint64_t seed = 7;  ///< of random weights
  bool cpu = false;
  bool help = false;
};

/// Throws hortator::UsageError for what does not exist or makes no sense.
Options parse_options(int argc, const char* const* argv);
std::string usage();

}  // namespace generate
