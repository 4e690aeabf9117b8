// How good and how fast a checkpoint is: what its weights in 8 and 4 bits cost and save.
#include "measuring.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <hortator/bigmodel/dispatch.hpp>
#include <hortator/error.hpp>
#include <hortator/models/generate.hpp>
#include <hortator/models/tokenizer.hpp>
#include <hortator/state.hpp>
#include <iomanip>
#include <iterator>
#include <sstream>

#include "pretrained.hpp"

namespace generate {
namespace {

namespace models = hortator::models;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t window = 256;  // tokens that are predicted from one beginning

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

std::string rounded(double value, int digits) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(digits) << value;
  return out.str();
}

models::Tokens tokens_of(const Options& options) {
  std::ifstream in(options.perplexity);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in) throw hortator::UsageError({.what = "Cannot read the text '" + options.perplexity.string() + "'"});
  // the whole text, whatever limits tokenizer.json has
  auto tokens = models::Tokenizer(options.checkpoint).without_limits().encode(text).ids;
  if (tokens.size() < 2)
    throw hortator::UsageError({.what = "The text '" + options.perplexity.string() + "' has no two tokens"});
  return {tokens.begin(), tokens.end()};
}

/// exp of the mean loss over the tokens of windows that do not overlap.
double perplexity_of(models::PretrainedModel& model, const models::Tokens& tokens) {
  double sum = 0;
  std::int64_t count = 0;
  const auto all = at::tensor(tokens, at::kLong);
  for (std::int64_t begin = 0; begin + 1 < all.numel(); begin += window) {
    const auto some = all.narrow(0, begin, std::min(window + 1, all.numel() - begin));
    const auto inputs = some.narrow(0, 0, some.numel() - 1).unsqueeze(0), targets = some.narrow(0, 1, some.numel() - 1);
    const auto logits = models::evaluate(model, {.input_ids = inputs}).logits;
    sum += at::cross_entropy_loss(logits.flatten(0, 1).to(at::kFloat), targets, {}, at::Reduction::Sum).item<double>();
    count += targets.numel();
  }
  return std::exp(sum / static_cast<double>(count));
}

/// Bytes a second at which this thread's cores read memory.
double memory_bandwidth() {
  constexpr std::int64_t elements = std::int64_t{1} << 26;
  const auto memory = at::ones({elements}, at::kInt);
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    const auto begin = Clock::now();
    [[maybe_unused]] const volatile auto sum = at::max(memory).item<int>();
    best = std::max(best, static_cast<double>(memory.nbytes()) / seconds_since(begin));
  }
  return best;
}

/// Bytes of weights that each token reads: without an embedding that has no other use: a token reads one of its rows.
double bytes_of_token(const models::PretrainedModel& model) {
  double bytes = 0;
  for (const auto& item : model.named_parameters()) bytes += static_cast<double>(item.value().nbytes());
  const auto parameters = model.named_parameters();
  const auto has = [&](const char* end) {
    return std::any_of(parameters.begin(), parameters.end(),
                       [&](const auto& item) { return item.key().ends_with(end); });
  };
  if (!has("lm_head.weight")) return bytes;
  for (const auto& item : parameters)
    if (item.key().ends_with("embed_tokens.weight") || item.key().ends_with("wte.weight"))
      bytes -= static_cast<double>(item.value().nbytes());
  return bytes;
}

/// Seconds a token, of the fastest of some runs.
double seconds_of_token(models::PretrainedModel& model, std::int64_t tokens) {
  const models::GenerateOptions options{
      .max_new_tokens = tokens, .min_new_tokens = tokens, .sample = false, .num_beams = 1};
  const models::Tokens prompt(8, 1);
  double best = 1e300;
  for (int run = 0; run < 4; ++run) {  // the first one also allocates
    const auto begin = Clock::now();
    models::generate(model, {prompt}, options);
    best = std::min(best, seconds_since(begin) / static_cast<double>(tokens));
  }
  return best;
}

void measure_model(const Options& options, const hortator::State& state, models::PretrainedModel& model) {
  const at::NoGradGuard no_grad;
  if (!options.perplexity.empty()) {
    const auto tokens = tokens_of(options);
    state.print("perplexity ", rounded(perplexity_of(model, tokens), 3), " of ", tokens.size(), " tokens");
  }
  if (options.speed == 0) return;
  const auto seconds = seconds_of_token(model, options.speed), bytes = bytes_of_token(model);
  const auto bandwidth = memory_bandwidth();
  state.print(rounded(1 / seconds, 1), " tokens a second; ", rounded(bytes / 1e6, 1),
              " MB of weights a token, which memory at ", rounded(bandwidth / 1e9, 1), " GB/s allows ",
              rounded(bandwidth / bytes, 1), " times a second");
}

/// The model with all its weights on disk.
void measure_on_disk(const Options& options, const hortator::State& state) {
  auto empty = hortator::init_empty_weights(
      [&] { return models::from_config(options.checkpoint, {.dtype = options.bf16 ? at::kBFloat16 : at::kFloat}); });
  empty->eval();
  const hortator::DeviceMap on_disk = {{"", hortator::DevicePlacement::disk()}};
  auto model = hortator::load_checkpoint_and_dispatch(
      state, empty, options.checkpoint,
      {.device_map = on_disk, .offload_folder = options.disk, .quantise = packing(options, *empty)});
  const auto together = model.together();
  measure_model(options, state, *model.unwrap());
  const auto counters = model.counters();
  state.print(rounded(static_cast<double>(counters.on_disk) / 1e6, 1), " MB of weights on disk");
}

}  // namespace

void measure(const Options& options) {
  const hortator::State state({.cpu = options.cpu});
  if (state.num_processes() > 1)
    throw hortator::UsageError(
        {.what = "--perplexity and --speed: expected one rank, got " + std::to_string(state.num_processes())});
  if (!options.disk.empty()) return measure_on_disk(options, state);
  const auto model = loaded(options);
  model->to(state.device());
  measure_model(options, state, *model);
}

}  // namespace generate
