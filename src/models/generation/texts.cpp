#include <algorithm>
#include <hortator/error.hpp>
#include <hortator/models/generate_texts.hpp>
#include <utility>

#include "models/generation/settings.hpp"

namespace hortator::models {
namespace {

/// Where the first stop string in a text ends; npos if it contains none. Looks from `begin` on.
std::size_t end_of_stop(const std::string& text, const std::vector<std::string>& stops, std::size_t begin) {
  auto first = std::string::npos;
  for (const auto& stop : stops) {
    const auto from = begin > stop.size() ? begin - stop.size() : 0;
    const auto at = text.find(stop, from);
    if (at != std::string::npos) first = std::min(first, at + stop.size());
  }
  return first;
}

/// The text of all tokens, up to the end of a stop string. Bytes that are not UTF-8 may look different from what came
/// token by token: they are decoded with those that follow.
std::string finished_text(const Tokenizer& tokenizer, const Tokens& tokens, const std::vector<std::string>& stops) {
  auto text = tokenizer.decode(tokens);
  text.resize(std::min(text.size(), end_of_stop(text, stops, 0)));
  return text;
}

/// The text of one prompt while its tokens come.
class GrowingText {
 public:
  GrowingText(const Tokenizer& tokenizer, const std::vector<std::string>& stops) : stream_(tokenizer), stops_(stops) {}

  /// Adds a token, or ends the text. Returns what is new, up to the end of a stop string.
  std::string_view push(std::int64_t id) { return add(stream_.push(id)); }
  std::string_view finish() { return add(stream_.finish()); }

  bool is_stopped() const { return is_stopped_; }

 private:
  std::string_view add(const std::string& more) {
    if (is_stopped_) return {};
    const auto before = text_.size();
    text_ += more;
    const auto end = end_of_stop(text_, stops_, before);
    is_stopped_ = end != std::string::npos;
    if (is_stopped_) text_.resize(end);
    return std::string_view(text_).substr(before);
  }

  TextStream stream_;
  const std::vector<std::string>& stops_;
  std::string text_;
  bool is_stopped_ = false;
};

std::vector<std::string> one_by_one(PretrainedModel& model, const Tokenizer& tokenizer,
                                    const std::vector<Tokens>& prompts, const TextOptions& options) {
  std::vector<GrowingText> texts(prompts.size(), GrowingText(tokenizer, options.stop_strings));
  const auto show = [&](std::size_t prompt, std::string_view more) {
    if (options.on_text && !more.empty()) options.on_text(prompt, more);
  };
  auto generation = options.generation;
  generation.ends = [&](std::size_t prompt, const Tokens& tokens) {
    show(prompt, texts[prompt].push(tokens.back()));
    return texts[prompt].is_stopped() || (options.generation.ends && options.generation.ends(prompt, tokens));
  };
  const auto tokens = generate(model, prompts, generation);
  std::vector<std::string> all;
  for (std::size_t prompt = 0; prompt < texts.size(); ++prompt) {
    show(prompt, texts[prompt].finish());
    all.push_back(finished_text(tokenizer, tokens[prompt], options.stop_strings));
  }
  return all;
}

std::vector<std::string> by_beams(PretrainedModel& model, const Tokenizer& tokenizer,
                                  const std::vector<Tokens>& prompts, const TextOptions& options) {
  if (options.on_text) {
    throw UsageError(
        {.what = "on_text was given with num_beams", .why = "a beam's text is certain only when the search is over"});
  }
  auto generation = options.generation;
  generation.ends = [&](std::size_t prompt, const Tokens& tokens) {
    const bool is_stopped = end_of_stop(tokenizer.decode(tokens), options.stop_strings, 0) != std::string::npos;
    return is_stopped || (options.generation.ends && options.generation.ends(prompt, tokens));
  };
  std::vector<std::string> all;
  for (const auto& tokens : generate(model, prompts, generation))
    all.push_back(finished_text(tokenizer, tokens, options.stop_strings));
  return all;
}

}  // namespace

std::vector<std::string> generate_texts(PretrainedModel& model, const Tokenizer& tokenizer,
                                        const std::vector<std::string>& prompts, const TextOptions& options) {
  if (std::ranges::any_of(options.stop_strings, &std::string::empty))
    throw UsageError({.what = "stop_strings has an empty string", .why = "every text contains it"});
  std::vector<Tokens> tokens;
  const auto whole = tokenizer.without_limits();  // a prompt is neither cut nor padded, whatever tokenizer.json says
  for (const auto& prompt : prompts) tokens.push_back(whole.encode(prompt, options.add_special_tokens).ids);
  const bool searches = *with_defaults(options.generation, model.config()).num_beams > 1;
  return searches ? by_beams(model, tokenizer, tokens, options) : one_by_one(model, tokenizer, tokens, options);
}

}  // namespace hortator::models
