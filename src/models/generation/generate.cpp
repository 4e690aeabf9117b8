#include <ATen/ATen.h>

#include <hortator/error.hpp>
#include <hortator/models/generate.hpp>

#include "core/text/text.hpp"
#include "models/generation/beam_search.hpp"
#include "models/generation/decoding.hpp"
#include "models/generation/prompts.hpp"
#include "models/generation/scores.hpp"

namespace hortator::models {
namespace {

/// Puts the model into evaluation mode while it lives.
class EvaluationScope {
 public:
  explicit EvaluationScope(PretrainedModel& model) : model_(model), was_training_(model.is_training()) {
    model_.eval();
  }
  ~EvaluationScope() { model_.train(was_training_); }
  EvaluationScope(const EvaluationScope&) = delete;
  EvaluationScope& operator=(const EvaluationScope&) = delete;

 private:
  PretrainedModel& model_;
  bool was_training_;
};

}  // namespace

std::vector<Tokens> generate(PretrainedModel& model, const std::vector<Tokens>& prompts,
                             const GenerateOptions& options) {
  require_valid(options);
  if (!model.config().is_causal) {
    throw UsageError({.what = text::concat("generate() got a ", model.config().architecture),
                      .why = "it does not predict the next token",
                      .hint = "use a model whose name ends in ForCausalLM or LMHeadModel"});
  }
  require_prompts(prompts, model.config(), options.max_new_tokens);
  const c10::InferenceMode inference;  // without gradients, and without what views and versions cost
  const EvaluationScope evaluation(model);
  return options.num_beams > 1 ? search_beams(model, prompts, options) : Decoding(model, prompts, options).run();
}

}  // namespace hortator::models
