#pragma once

#include <hortator/accelerator.hpp>
#include <hortator/models/chat_template.hpp>
#include <hortator/models/generate_texts.hpp>
#include <hortator/models/pretrained.hpp>
#include <hortator/models/tokenizer.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "options.hpp"

namespace generate {

/// A Hugging Face checkpoint with its tokenizer.
class Completer {
 public:
  /// The model on the accelerator's device, divided among ranks if parallel.tensor is above 1. @collective
  Completer(const Options& options, hortator::Accelerator& accelerator);

  /// Returns the continuation of each text of a batch. `all` are the texts of the run: the random tokens of a text
  /// depend on its place there. @collective over the ranks of a divided model
  std::vector<std::string> complete(const std::vector<std::string>& batch, const std::vector<std::string>& all) const;

 private:
  hortator::models::TextOptions options_;
  hortator::Model<std::shared_ptr<hortator::models::PretrainedModel>> model_;
  hortator::models::Tokenizer tokenizer_;
  std::optional<hortator::models::ChatTemplate> chat_;  ///< if prompts are messages
};

/// Computes what the model makes of given token numbers, and writes it to the files that the options name. @collective
void write_outputs(const Options& options);

}  // namespace generate
