#include "models/generation/scores.hpp"

#include <ATen/ATen.h>

#include <cmath>
#include <hortator/error.hpp>
#include <limits>

#include "core/text/text.hpp"

namespace hortator::models {
namespace {

constexpr double never = -std::numeric_limits<double>::infinity();

void require_option(bool holds, const char* name, const char* expected, double value) {
  if (!holds) throw UsageError({.what = text::concat(name, ": expected ", expected, ", got ", value)});
}

at::Tensor without_less_than(const at::Tensor& scores, const at::Tensor& bound) {
  return scores.masked_fill(scores.lt(bound), never);
}

/// Keeps the likeliest tokens until their probabilities reach `top_p`, at least one.
at::Tensor nucleus(const at::Tensor& scores, double top_p) {
  const auto [sorted, order] = scores.sort(/*dim=*/-1, /*descending=*/false);
  auto removed = at::softmax(sorted, -1).cumsum(-1).le(1 - top_p);
  removed.select(-1, -1).fill_(false);
  return scores.masked_fill(removed.scatter(1, order, removed), never);
}

void require_valid_beams(const GenerateOptions& options) {
  require_option(*options.num_beams >= 1, "num_beams", "a number from 1", static_cast<double>(*options.num_beams));
  const bool fits = *options.num_return_sequences >= 1 && *options.num_return_sequences <= *options.num_beams;
  require_option(fits, "num_return_sequences", "a number from 1 to num_beams",
                 static_cast<double>(*options.num_return_sequences));
  require_option(std::isfinite(*options.length_penalty), "length_penalty", "a finite number", *options.length_penalty);
  if (*options.num_beams == 1) return;
  const auto refuse = [](bool is_set, const char* name, const char* why) {
    if (!is_set) return;
    throw UsageError({.what = text::concat(name, " was given with num_beams"),
                      .why = why,
                      .hint = text::concat("set num_beams to 1, or leave out ", name,
                                           ". Either may come from the checkpoint's generation_config.json")});
  };
  refuse(*options.sample, "sample", "beam search takes the likeliest tokens");
  refuse(static_cast<bool>(options.on_tokens), "on_tokens", "a beam's tokens are certain only when the search is over");
  refuse(options.static_cache, "static_cache", "beams are copied within a cache that grows");
}

}  // namespace

void require_valid(const GenerateOptions& options) {
  const auto finite = [](double value) { return std::isfinite(value); };
  require_option(*options.max_new_tokens >= 1, "max_new_tokens", "a number from 1",
                 static_cast<double>(*options.max_new_tokens));
  require_option(*options.min_new_tokens >= 0, "min_new_tokens", "a number from 0",
                 static_cast<double>(*options.min_new_tokens));
  require_option(finite(*options.temperature) && *options.temperature > 0, "temperature",
                 "a number above 0 (for the likeliest token, leave out sample)", *options.temperature);
  require_option(*options.top_k >= 0, "top_k", "a number from 0", static_cast<double>(*options.top_k));
  require_option(*options.top_p > 0 && *options.top_p <= 1, "top_p", "a number above 0 up to 1", *options.top_p);
  require_option(*options.min_p >= 0 && *options.min_p <= 1, "min_p", "a number from 0 to 1", *options.min_p);
  require_option(finite(*options.repetition_penalty) && *options.repetition_penalty > 0, "repetition_penalty",
                 "a number above 0", *options.repetition_penalty);
  require_option(options.max_batch_size >= 0, "max_batch_size", "a number from 0",
                 static_cast<double>(options.max_batch_size));
  if (options.static_cache && options.max_batch_size > 0) {
    throw UsageError({.what = "static_cache and max_batch_size were given together",
                      .why = "a batch that prompts enter later has no largest length",
                      .hint = "leave out one of them"});
  }
  require_valid_beams(options);
}

at::Tensor penalised(const at::Tensor& scores, const at::Tensor& texts, double penalty) {
  if (penalty == 1.0) return scores;
  const auto present = scores.gather(1, texts);
  return scores.scatter(1, texts, at::where(present.lt(0), present * penalty, present / penalty));
}

at::Tensor without_tokens(const at::Tensor& scores, const std::set<std::int64_t>& tokens) {
  // Ids outside the vocabulary never come; -1 would be its last token.
  const std::vector<std::int64_t> listed(tokens.lower_bound(0), tokens.lower_bound(scores.size(1)));
  if (listed.empty()) return scores;
  return scores.index_fill(1, at::tensor(listed, scores.options().dtype(at::kLong)), never);
}

at::Tensor restricted(at::Tensor scores, const GenerateOptions& options) {
  if (*options.temperature != 1.0) scores = scores / *options.temperature;
  if (*options.top_k > 0 && *options.top_k < scores.size(-1)) {
    const auto likeliest = std::get<0>(scores.topk(*options.top_k, -1));
    scores = without_less_than(scores, likeliest.select(-1, -1).unsqueeze(-1));
  }
  if (*options.top_p < 1.0) scores = nucleus(scores, *options.top_p);
  if (*options.min_p > 0.0) {
    const auto probabilities = at::softmax(scores, -1);
    const auto bound = *options.min_p * std::get<0>(probabilities.max(-1, /*keepdim=*/true));
    scores = scores.masked_fill(probabilities.lt(bound), never);
  }
  return scores;
}

// The finaliser of SplitMix64, applied to each number in turn.
double uniform(std::uint64_t seed, std::uint64_t prompt, std::uint64_t step) {
  const auto mixed = [](std::uint64_t x) {
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  };
  constexpr int bits = 53;  // of a double
  return std::ldexp(static_cast<double>(mixed(mixed(mixed(seed) ^ prompt) ^ step) >> (64 - bits)), -bits);
}

at::Tensor drawn(const at::Tensor& scores, const at::Tensor& random) {
  const auto sums = at::softmax(scores.to(at::kDouble), -1).cumsum(-1);
  const auto total = sums.select(-1, -1);
  const auto chosen = sums.le((random * total).unsqueeze(-1)).sum(-1);
  return chosen.clamp_max(scores.size(-1) - 1);
}

}  // namespace hortator::models
