#pragma once

#include <cstdint>
#include <functional>
#include <hortator/export.hpp>
#include <hortator/models/model.hpp>
#include <optional>
#include <vector>

namespace hortator::models {

/// The tokens of one text.
using Tokens = std::vector<std::int64_t>;

/// When beam search stops. Each name is a value of transformers' early_stopping.
enum class EarlyStopping {
  no,    ///< when no beam is likely to become better than those that have ended
  yes,   ///< when as many beams have ended as are searched
  never  ///< when no beam can become better at any length
};

/// Options of generate(). Without `sample` the likeliest token follows; with it, a random one. A value that is not set
/// is that of the checkpoint's generation_config.json, as in transformers, or else the default in parentheses.
struct GenerateOptions {
  std::optional<std::int64_t> max_new_tokens = {};  ///< (64)
  std::optional<std::int64_t> min_new_tokens = {};  ///< (0) no text ends earlier
  std::optional<double> repetition_penalty = {};  ///< (1) above 1: tokens that the text already has become less likely
  std::optional<bool> sample = {};                ///< (false) do_sample in the file
  std::optional<double> temperature = {};         ///< (1) below 1: likely tokens become likelier
  std::optional<std::int64_t> top_k = {};         ///< (0) only that many likeliest tokens; 0: all
  std::optional<double> top_p = {};               ///< (1) only the likeliest tokens that have this probability together
  std::optional<double> min_p = {};               ///< (0) only tokens at least this likely, relative to the likeliest
  std::uint64_t seed = 0;                         ///< of random tokens
  /// The number of each prompt among all of a run, 0, 1, ... by default. Each number has its own random numbers, so
  /// that a text does not depend on the ranks and batches that the prompts are distributed over.
  std::vector<std::uint64_t> prompt_numbers = {};
  /// That end a text; by default those of generation_config.json, or else of config.json.
  std::optional<std::vector<std::int64_t>> eos_token_ids = {};
  /// Called with the new tokens of a prompt's text after each of them; the text ends where it returns true.
  std::function<bool(std::size_t prompt, const Tokens& text)> ends = {};
  bool static_cache = false;  ///< allocates the cache for all tokens at the beginning
  /// At most that many prompts at a time: when a text ends, the next prompt takes its place. 0: all.
  std::int64_t max_batch_size = 0;
  /// Called with the new token of each prompt after each step, empty for texts that have ended or wait.
  std::function<void(const std::vector<std::optional<std::int64_t>>&)> on_tokens = {};

  // Beam search: not the likeliest token after each other, but the likeliest texts.
  std::optional<std::int64_t> num_beams = {};  ///< (1) texts of a prompt that are continued together; 1: no search
  std::optional<std::int64_t> num_return_sequences = {};  ///< (1) texts of a prompt that are returned, the best first
  /// (1) The sum of log-probabilities is divided by length^this: above 0 for longer texts.
  std::optional<double> length_penalty = {};
  std::optional<EarlyStopping> early_stopping = {};  ///< (no)
};

/// Throws UsageError for options that generate() refuses with this model, whatever the prompts are. Local to this
/// process.
HORTATOR_API void require_valid(const PretrainedModel& model, const GenerateOptions& options);

/// Runs a model without gradients. Where its layers are on several ranks (parallel.pipeline), all of these have the
/// outputs of the last one: logits, last_hidden_state and pooler_output, whole.
/// @collective along a pipeline
HORTATOR_API ModelOutputs evaluate(PretrainedModel& model, const ModelInputs& inputs);

/// Continues each prompt and returns the new tokens, with the one that ends a text: num_return_sequences texts a
/// prompt, one prompt after the other. Prompts may have different lengths. The model is in evaluation mode meanwhile.
///
/// @collective over the ranks of a model that parallel.tensor or parallel.pipeline divides, which pass the same
/// prompts, and over those that gather its parameters (ZeRO's stage 3) or have its experts; otherwise local.
HORTATOR_API std::vector<Tokens> generate(PretrainedModel& model, const std::vector<Tokens>& prompts,
                                          const GenerateOptions& options = {});

}  // namespace hortator::models
