#pragma once

#include <cstdint>
#include <filesystem>
#include <hortator/models/generate.hpp>
#include <hortator/training/answers.hpp>
#include <string>
#include <vector>

#include "../gpt/model.hpp"

namespace generate {

struct Options {
  std::filesystem::path prompts = {};  ///< one prompt per line
  std::filesystem::path answers = {};  ///< one answer per line
  gpt::ModelOptions model;
  std::filesystem::path weights = {};  ///< of the model; empty: random weights
  double memory = 0;                   ///< bytes of host memory that the model may take; 0: all that is free
  std::int64_t max_bytes = 64;         ///< of an answer
  hortator::AnswerOptions answering;
  std::uint64_t seed = 7;  ///< of random weights
  // With a Hugging Face checkpoint:
  std::filesystem::path checkpoint = {};  ///< its folder or GGUF file; empty: the model of the example gpt
  std::filesystem::path adapter = {};     ///< a folder of peft's layout, for the checkpoint
  std::string quantise = {};              ///< a format, or "file"; empty: floating-point weights
  std::int64_t quantise_group = 64;       ///< weights that share a scale
  std::string quantise_scores = {};       ///< the same for the layer that scores tokens; empty: int8 with quantise
  bool bf16 = false;                      ///< weights and computation in bfloat16
  std::filesystem::path disk = {};        ///< a folder for the weights, which stay on disk; empty: they are in memory
  std::filesystem::path save = {};        ///< folder to which the model is written, packed if it is
  std::filesystem::path perplexity = {};  ///< a text to measure
  std::int64_t speed = 0;                 ///< tokens to generate for a measurement; 0: none
  int tensor = 1;                         ///< ranks among which its layers are divided; 1: the launcher's value
  int pipeline = 1;                       ///< ranks that have consecutive layers; 1: the launcher's value
  hortator::models::GenerateOptions generation;
  std::vector<std::string> stop = {};  ///< an answer ends with the first of these
  bool chat = false;                   ///< prompts are messages of a conversation
  bool interactive = false;            ///< prompts come from the standard input
  std::filesystem::path ids = {};      ///< token numbers to compute the next two of
  std::filesystem::path logits = {};   ///< output file
  std::filesystem::path hidden = {};   ///< output file
  bool cpu = false;
  bool help = false;
};

/// Parses the command line. Throws hortator::UsageError for unknown options and invalid values.
Options parse_options(int argc, const char* const* argv);
std::string usage();

}  // namespace generate
