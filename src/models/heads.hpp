#pragma once

#include <cstdint>
#include <hortator/models/model.hpp>
#include <memory>
#include <optional>
#include <string>

namespace hortator::models {

/// A model without a head, as part of one with a head.
struct Body {
  std::shared_ptr<PretrainedModel> model = {};
  std::string name = {};  ///< under which it is registered
  std::int64_t width = 0;
};

/// Scores of the next token: lm_head, or the token embedding where `tied` is defined.
std::shared_ptr<PretrainedModel> causal_head(const Body& body, std::int64_t vocabulary, const at::Tensor& tied);

/// A linear layer `name` after dropout.
struct LinearHead {
  std::string name = {};
  std::int64_t outputs = 0;
  bool bias = true;
  double dropout = 0.0;
};

/// Scores of each token.
std::shared_ptr<PretrainedModel> token_head(const Body& body, const LinearHead& head);
/// Scores of a text from its last token that is not padding, as causal models have.
std::shared_ptr<PretrainedModel> last_token_head(const Body& body, const LinearHead& head,
                                                 std::optional<std::int64_t> pad_token);
/// Scores from the pooled vector.
std::shared_ptr<PretrainedModel> pooled_head(const Body& body, const LinearHead& head);

/// The logits of a language head, or the sum of losses of ModelInputs::targets. `bias` may be undefined.
void predict_tokens(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& bias,
                    const ModelInputs& inputs, ModelOutputs& outputs);

}  // namespace hortator::models
