#include <ATen/ATen.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <hortator/models/generate.hpp>

#include "core/text/text.hpp"
#include "models/generation/beam_search.hpp"
#include "models/generation/decoding.hpp"
#include "models/generation/prompts.hpp"
#include "models/generation/scores.hpp"
#include "models/generation/settings.hpp"

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

/// Each beam needs enough continuations, so that beams go on when others end.
void require_vocabulary(const ModelConfig& config, const GenerateOptions& options) {
  if (*options.num_beams == 1) return;
  const auto ends = options.eos_token_ids->size();
  const auto needed = static_cast<std::int64_t>(std::max<std::size_t>(2, 1 + ends)) * *options.num_beams;
  if (needed <= config.vocabulary) return;
  throw UsageError({.what = text::concat("num_beams: ", *options.num_beams, " beams need ", needed, " tokens"),
                    .why = text::concat("the model's vocabulary has ", config.vocabulary),
                    .hint = "lower num_beams"});
}

}  // namespace

void require_valid(const PretrainedModel& model, const GenerateOptions& options) {
  if (!model.config().is_causal) {
    throw UsageError({.what = text::concat("generate() got a ", model.config().architecture),
                      .why = "it does not predict the next token",
                      .hint = "use a model whose name ends in ForCausalLM or LMHeadModel"});
  }
  const auto all = with_defaults(options, model.config());
  require_valid(all);
  require_vocabulary(model.config(), all);
}

std::vector<Tokens> generate(PretrainedModel& model, const std::vector<Tokens>& prompts, const GenerateOptions& given) {
  require_valid(model, given);
  const auto options = with_defaults(given, model.config());
  require_prompts(prompts, model.config(), *options.max_new_tokens);
  const c10::InferenceMode inference;  // without gradients, and without what views and versions cost
  const EvaluationScope evaluation(model);
  return *options.num_beams > 1 ? search_beams(model, prompts, options) : Decoding(model, prompts, options).run();
}

}  // namespace hortator::models
