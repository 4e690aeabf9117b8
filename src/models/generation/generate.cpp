#include <ATen/ATen.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <hortator/models/generate.hpp>
#include <hortator/models/key_value_cache.hpp>
#include <limits>
#include <set>

#include "core/text/text.hpp"
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

/// The prompts, padded on the left: all end at the same column.
struct PaddedPrompts {
  at::Tensor ids;   ///< [batch, time]; padding repeats the first token
  at::Tensor mask;  ///< [batch, time], 0 for padding; undefined if there is none
  at::Tensor positions;
};

PaddedPrompts padded(const std::vector<Tokens>& prompts, c10::Device device) {
  const auto longest = std::ranges::max_element(prompts, {}, &Tokens::size)->size();
  const auto rows = static_cast<std::int64_t>(prompts.size()), time = static_cast<std::int64_t>(longest);
  auto ids = at::empty({rows, time}, at::kLong), mask = at::zeros({rows, time}, at::kLong);
  bool has_padding = false;
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto& prompt = prompts[static_cast<std::size_t>(row)];
    const auto padding = time - static_cast<std::int64_t>(prompt.size());
    auto* to = ids.mutable_data_ptr<std::int64_t>() + row * time;
    std::fill_n(to, padding, prompt.front());
    std::ranges::copy(prompt, to + padding);
    mask[row].narrow(0, padding, time - padding).fill_(1);
    has_padding = has_padding || padding > 0;
  }
  const auto positions = (mask.cumsum(-1) - 1).clamp_min(0);
  return {
      .ids = ids.to(device), .mask = has_padding ? mask.to(device) : at::Tensor(), .positions = positions.to(device)};
}

void require_prompts(const std::vector<Tokens>& prompts, const ModelConfig& config, std::int64_t max_new_tokens) {
  if (prompts.empty()) throw UsageError({.what = "generate() got no prompts"});
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const auto& prompt = prompts[i];
    if (prompt.empty())
      throw UsageError(
          {.what = text::concat("Prompt ", i, " has no tokens"), .hint = "begin it with a token, such as bos"});
    const auto wrong = std::ranges::find_if(prompt, [&](auto id) { return id < 0 || id >= config.vocabulary; });
    if (wrong != prompt.end()) {
      throw UsageError({.what = text::concat("Prompt ", i, " has the token ", *wrong),
                        .why = text::concat("the model has the tokens 0 to ", config.vocabulary - 1),
                        .hint = "use the tokenizer of this model"});
    }
    const auto all = static_cast<std::int64_t>(prompt.size()) + max_new_tokens;
    if (config.has_learned_positions && all > config.max_positions) {
      throw UsageError({.what = text::concat("Prompt ", i, " has ", prompt.size(), " tokens, and ", max_new_tokens,
                                             " are to follow"),
                        .why = text::concat("the model has only ", config.max_positions, " positions"),
                        .hint = "shorten the prompt, or lower max_new_tokens"});
    }
  }
}

class Generation {
 public:
  Generation(PretrainedModel& model, const std::vector<Tokens>& prompts, const GenerateOptions& options)
      : model_(model),
        options_(options),
        device_(model.parameters().front().device()),
        prompts_(padded(prompts, device_)),
        texts_(prompts_.ids),
        cache_(options.static_cache ? texts_.size(1) + options.max_new_tokens : 0),
        numbers_(options.prompt_numbers),
        new_(prompts.size()),
        has_ended_(prompts.size()) {
    const auto ends = options.eos_token_ids.value_or(model.config().eos_token_ids);
    ends_.insert(ends.begin(), ends.end());
    for (auto row = numbers_.size(); row < prompts.size(); ++row) numbers_.push_back(row);
  }

  std::vector<Tokens> run() {
    auto [ids, mask, positions] = prompts_;
    for (std::int64_t step = 0; step < options_.max_new_tokens; ++step) {
      const auto outputs = model_.forward(
          {.input_ids = ids, .attention_mask = mask, .position_ids = positions, .cache = &cache_, .last = 1});
      const auto next = chosen(outputs.logits.select(1, -1).to(at::kFloat), step);
      take(next.cpu());
      if (std::ranges::all_of(has_ended_, [](bool has_ended) { return has_ended; })) break;
      ids = next.unsqueeze(1);
      texts_ = at::cat({texts_, ids}, 1);
      if (mask.defined()) mask = at::cat({mask, at::ones_like(ids)}, 1);
      positions = positions.narrow(1, positions.size(1) - 1, 1) + 1;
    }
    return std::move(new_);
  }

 private:
  at::Tensor chosen(at::Tensor scores, std::int64_t step) const {
    scores = penalised(scores, texts_, options_.repetition_penalty);
    if (step < options_.min_new_tokens && !ends_.empty()) {
      const auto ends = at::tensor(std::vector<std::int64_t>(ends_.begin(), ends_.end()), ids_options());
      scores = scores.index_fill(1, ends, -std::numeric_limits<double>::infinity());
    }
    if (!options_.sample) return scores.argmax(-1);
    std::vector<double> random;
    for (std::uint64_t row = 0; row < new_.size(); ++row)
      random.push_back(uniform(options_.seed, numbers_[row], static_cast<std::uint64_t>(step)));
    return drawn(restricted(scores, options_), at::tensor(random, ids_options().dtype(at::kDouble)));
  }

  void take(const at::Tensor& next) {
    std::vector<std::optional<std::int64_t>> shown(new_.size());
    for (std::size_t row = 0; row < new_.size(); ++row) {
      if (has_ended_[row]) continue;
      const auto token = next.const_data_ptr<std::int64_t>()[row];
      new_[row].push_back(token);
      shown[row] = token;
      has_ended_[row] = ends_.contains(token);
    }
    if (options_.on_tokens) options_.on_tokens(shown);
  }

  at::TensorOptions ids_options() const { return at::TensorOptions(device_).dtype(at::kLong); }

  PretrainedModel& model_;
  const GenerateOptions& options_;
  c10::Device device_;
  PaddedPrompts prompts_;
  at::Tensor texts_;  ///< the prompts and the new tokens
  KeyValueCache cache_;
  std::vector<std::uint64_t> numbers_;  ///< of the prompts
  std::set<std::int64_t> ends_;
  std::vector<Tokens> new_;
  std::vector<bool> has_ended_;
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
  const at::NoGradGuard no_grad;
  const EvaluationScope evaluation(model);
  return Generation(model, prompts, options).run();
}

}  // namespace hortator::models
