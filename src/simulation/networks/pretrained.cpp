#include "simulation/networks/pretrained.hpp"

#include <filesystem>
#include <hortator/error.hpp>
#include <hortator/models/pretrained.hpp>

#include "core/text/text.hpp"

namespace hortator::simulation {

Pretrained::Pretrained(const Section& section) {
  const auto path = std::filesystem::path(section.file()).parent_path() / section.text("path");
  models::PretrainedOptions options;
  if (section.has("head")) options.head = section.text("head");
  if (section.has("num_labels")) options.num_labels = section.integer("num_labels", 1);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    throw section.error("path", text::concat(text::quote(path.string()), " does not exist"),
                        "pass a folder with config.json and weights, as transformers saves it");
  }
  model_ = models::from_pretrained(path, options);
  register_module("model", model_);
  model_->train();
}

Network::Tensors Pretrained::forward(const Tensors& inputs) {
  const bool reads_text = model_->config().vocabulary > 0;
  if (inputs.empty() || inputs.size() > (reads_text ? 2U : 1U)) {
    throw UsageError({.what = text::concat("This model takes ", reads_text ? "one or two inputs" : "one input",
                                           ", the batch has ", inputs.size()),
                      .hint = reads_text ? "bind token numbers and, if there is padding, the attention mask"
                                         : "bind the images' pixels"});
  }
  models::ModelInputs given;
  if (reads_text) {
    given.input_ids = inputs[0].to(at::kLong);
    if (inputs.size() > 1) given.attention_mask = inputs[1].to(at::kLong);
  } else {
    given.pixel_values = inputs[0];
  }
  const auto outputs = model_->forward(given);
  return {outputs.logits.defined() ? outputs.logits : outputs.last_hidden_state};
}

}  // namespace hortator::simulation
