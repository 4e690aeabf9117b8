#include "models/generation/settings.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "core/log.hpp"
#include "core/text/text.hpp"
#include "models/config/config_fields.hpp"

namespace hortator::models {
namespace {

constexpr const char* file_name = "generation_config.json";

/// Fields that change nothing here: tokens that only other functions need, caches, and what is returned.
constexpr std::string_view without_effect[] = {"_commit_hash",
                                               "_from_model_config",
                                               "_name_or_path",
                                               "assistant_confidence_threshold",
                                               "assistant_lookbehind",
                                               "bos_token_id",
                                               "cache_config",
                                               "cache_implementation",
                                               "compile_config",
                                               "decoder_start_token_id",
                                               "disable_compile",
                                               "encoder_no_repeat_ngram_size",
                                               "encoder_repetition_penalty",
                                               "is_assistant",
                                               "low_memory",
                                               "max_matching_ngram_size",
                                               "model_type",
                                               "num_assistant_tokens",
                                               "num_assistant_tokens_schedule",
                                               "output_attentions",
                                               "output_hidden_states",
                                               "output_logits",
                                               "output_scores",
                                               "pad_token_id",
                                               "prefill_chunk_size",
                                               "prompt_lookup_num_tokens",
                                               "return_dict_in_generate",
                                               "return_legacy_cache",
                                               "target_lookbehind",
                                               "transformers_version",
                                               "trust_remote_code",
                                               "unk_token_id",
                                               "use_cache"};

/// Values of further fields with which they change nothing.
const std::map<std::string, nlohmann::json>& neutral_values() {
  static const std::map<std::string, nlohmann::json> values = {{"begin_suppress_tokens", nlohmann::json::array()},
                                                               {"diversity_penalty", 0.0},
                                                               {"epsilon_cutoff", 0.0},
                                                               {"eta_cutoff", 0.0},
                                                               {"guidance_scale", 1.0},
                                                               {"max_length", 20},  // as if it were not there
                                                               {"min_length", 0},
                                                               {"no_repeat_ngram_size", 0},
                                                               {"num_beam_groups", 1},
                                                               {"penalty_alpha", 0.0},
                                                               {"remove_invalid_values", false},
                                                               {"renormalize_logits", false},
                                                               {"suppress_tokens", nlohmann::json::array()},
                                                               {"token_healing", false},
                                                               {"typical_p", 1.0}};
  return values;
}

bool has_effect(const std::string& name, const nlohmann::ordered_json& value) {
  if (value.is_null() || std::ranges::find(without_effect, name) != std::end(without_effect)) return false;
  const auto neutral = neutral_values().find(name);
  return neutral == neutral_values().end() || nlohmann::json(value) != neutral->second;
}

/// The fields that are options of generate().
constexpr std::string_view known_fields[] = {
    "do_sample",      "early_stopping", "eos_token_id", "length_penalty",       "max_new_tokens",
    "min_new_tokens", "min_p",          "num_beams",    "num_return_sequences", "repetition_penalty",
    "temperature",    "top_k",          "top_p"};

/// The settings of a checkpoint.
class Settings {
 public:
  explicit Settings(const ModelConfig& config)
      : json_(config.generation_json.empty() ? nlohmann::ordered_json::object()
                                             : nlohmann::ordered_json::parse(config.generation_json)),
        fields_(json_, file_name, "") {}

  /// Sets what is not set. Without random tokens, what chooses them is not read.
  void complete(GenerateOptions& options, const std::vector<std::int64_t>& ends) const {
    count(options.max_new_tokens, "max_new_tokens", 64);
    count(options.min_new_tokens, "min_new_tokens", 0);
    number(options.repetition_penalty, "repetition_penalty", 1.0);
    if (!options.sample) options.sample = fields_.flag("do_sample", false);
    const Settings none{ModelConfig{}};
    const auto& random = *options.sample ? *this : none;
    random.number(options.temperature, "temperature", 1.0);
    random.count(options.top_k, "top_k", 0);
    random.number(options.top_p, "top_p", 1.0);
    random.number(options.min_p, "min_p", 0.0);
    count(options.num_beams, "num_beams", 1);
    count(options.num_return_sequences, "num_return_sequences", 1);
    number(options.length_penalty, "length_penalty", 1.0);
    if (!options.early_stopping) options.early_stopping = early_stopping();
    if (!options.eos_token_ids)
      options.eos_token_ids = fields_.has("eos_token_id") ? fields_.integers("eos_token_id") : ends;
  }

  std::vector<std::string> not_applied() const {
    std::vector<std::string> all;
    for (const auto& [name, value] : json_.items()) {
      const bool is_known = std::ranges::find(known_fields, name) != std::end(known_fields);
      if (!is_known && has_effect(name, value))
        all.push_back(text::concat(name, " (", value.dump(-1, ' ', /*ensure_ascii=*/true), ")"));
    }
    return all;
  }

 private:
  void number(std::optional<double>& option, const std::string& name, double absent) const {
    if (!option) option = fields_.number(name, absent);
  }
  void count(std::optional<std::int64_t>& option, const std::string& name, std::int64_t absent) const {
    if (!option) option = fields_.token(name).value_or(absent);
  }
  EarlyStopping early_stopping() const {
    const auto found = json_.find("early_stopping");
    if (found == json_.end() || !found->is_string())
      return fields_.flag("early_stopping", false) ? EarlyStopping::yes : EarlyStopping::no;
    fields_.require_one_of("early_stopping", fields_.text("early_stopping", ""), {"never"});
    return EarlyStopping::never;
  }

  nlohmann::ordered_json json_;
  ConfigFields fields_;
};

void warn_once(const std::vector<std::string>& not_applied) {
  if (not_applied.empty()) return;
  static std::mutex mutex;
  static std::set<std::string> known;
  const auto list = text::join(not_applied);
  const std::scoped_lock lock(mutex);
  if (!known.insert(list).second) return;
  log::warn("the checkpoint's ", file_name, " asks for what generate() does not have: ", list,
            ". Texts may differ from those of transformers");
}

}  // namespace

GenerateOptions with_defaults(GenerateOptions options, const ModelConfig& config) {
  warn_once(not_applied(options, config));
  Settings(config).complete(options, config.eos_token_ids);
  return options;
}

std::vector<std::string> not_applied(const GenerateOptions& options, const ModelConfig& config) {
  auto all = Settings(config).not_applied();
  if (options.max_new_tokens) std::erase_if(all, [](const auto& one) { return one.starts_with("max_length "); });
  return all;
}

}  // namespace hortator::models
