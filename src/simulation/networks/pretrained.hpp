#pragma once

#include <hortator/models/model.hpp>
#include <memory>

#include "simulation/networks/network.hpp"
#include "simulation/sections/section.hpp"

namespace hortator::simulation {

/// The model of a Hugging Face folder. Inputs of text models: token numbers [batch, length] and, optionally, the
/// attention mask; of image models: pixels [batch, channels, height, width]. The output are the logits, or the last
/// hidden state of a model without a head.
class Pretrained : public Network {
 public:
  /// Keys: path (relative to the folder of the settings), head, num_labels. Throws UsageError if there is no such
  /// folder.
  explicit Pretrained(const Section& section);

  Tensors forward(const Tensors& inputs) override;

 private:
  std::shared_ptr<models::PretrainedModel> model_;
};

}  // namespace hortator::simulation
