#pragma once

#include <cstdint>
#include <hortator/accelerator.hpp>
#include <hortator/models/chat_template.hpp>
#include <hortator/models/generate_texts.hpp>
#include <hortator/models/pretrained.hpp>
#include <hortator/models/tokenizer.hpp>
#include <hortator/quantise.hpp>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "options.hpp"

namespace generate {

/// The checkpoint's model with its weights packed and its adapter as the options say. Local.
std::shared_ptr<hortator::models::PretrainedModel> loaded(const Options& options);

/// What --quantise and the options beside it ask for of this model; nothing if weights stay as they are.
std::optional<hortator::QuantiseOptions> packing(const Options& options, const torch::nn::Module& net);

/// Writes the model to the folder that the options name.
void save(const Options& options);

/// A text to continue, and its number among all of the run: equal texts have different random tokens.
struct NumberedPrompt {
  std::string text = {};
  std::uint64_t number = 0;

  std::size_t size() const { return text.size(); }
  auto fields() { return std::tie(text, number); }
};
std::vector<NumberedPrompt> numbered(const std::vector<std::string>& texts);

/// A Hugging Face checkpoint with its tokenizer.
class Completer {
 public:
  /// The model on the accelerator's device, divided among ranks if parallel.tensor is above 1. Throws
  /// hortator::UsageError for options that it cannot answer with. @collective
  Completer(const Options& options, hortator::Accelerator& accelerator);

  /// Returns the continuation of each prompt of a batch. @collective over the ranks of a divided model
  std::vector<std::string> complete(const std::vector<NumberedPrompt>& batch) const;

 private:
  hortator::models::TextOptions options_;
  hortator::Model<std::shared_ptr<hortator::models::PretrainedModel>> model_;
  hortator::models::Tokenizer tokenizer_;
  std::optional<hortator::models::ChatTemplate> chat_;  ///< if prompts are messages
};

/// Computes what the model makes of given token numbers, and writes it to the files that the options name. @collective
void write_outputs(const Options& options);

}  // namespace generate
