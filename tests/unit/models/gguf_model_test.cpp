// Models of the Llama family whose weights are GGUF files.
#include "cases.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/gguf_file.hpp"

using namespace hortator;
using test::ModelCase;
namespace fs = std::filesystem;

namespace {

/// The name of llama.cpp for a name of transformers.
std::string gguf_name(std::string name) {
  const std::vector<std::pair<std::string, std::string>> replaced = {{"model.embed_tokens.", "token_embd."},
                                                                     {"model.norm.", "output_norm."},
                                                                     {"lm_head.", "output."},
                                                                     {"model.layers.", "blk."},
                                                                     {"self_attn.q_proj", "attn_q"},
                                                                     {"self_attn.k_proj", "attn_k"},
                                                                     {"self_attn.v_proj", "attn_v"},
                                                                     {"self_attn.o_proj", "attn_output"},
                                                                     {"self_attn.q_norm", "attn_q_norm"},
                                                                     {"self_attn.k_norm", "attn_k_norm"},
                                                                     {"mlp.gate_proj", "ffn_gate"},
                                                                     {"mlp.up_proj", "ffn_up"},
                                                                     {"mlp.down_proj", "ffn_down"},
                                                                     {"post_attention_layernorm", "ffn_norm"},
                                                                     {"input_layernorm", "attn_norm"}};
  for (const auto& [from, to] : replaced) {
    if (const auto at = name.find(from); at != std::string::npos) name.replace(at, from.size(), to);
  }
  return name;
}

/// The order of rows in which llama.cpp's converter stores queries and keys of Llama.
at::Tensor interleaved(const at::Tensor& rows, std::int64_t heads) {
  auto shape = rows.sizes().vec();
  const auto width = shape.front() / heads;
  shape.erase(shape.begin());
  std::vector<std::int64_t> split = {heads, 2, width / 2};
  split.insert(split.end(), shape.begin(), shape.end());
  return rows.reshape(split).transpose(1, 2).reshape(rows.sizes()).contiguous();
}

std::int64_t field(const std::string& json, const std::string& name) {
  const auto at = json.find("\"" + name + "\":");
  REQUIRE(at != std::string::npos);
  return std::stoll(json.substr(at + name.size() + 3));
}

/// The weights of a model as llama.cpp's converter writes them.
test::GgufFile gguf_file(const models::PretrainedModel& model, const std::string& architecture) {
  const auto& json = model.config().json;
  const auto heads = field(json, "num_attention_heads"), key_heads = field(json, "num_key_value_heads");
  test::GgufFile file;
  file.set("general.architecture", architecture);
  file.set(architecture + ".attention.head_count", static_cast<std::uint32_t>(heads));
  file.set(architecture + ".attention.head_count_kv", static_cast<std::uint32_t>(key_heads));
  for (const auto& parameter : model.named_parameters()) {
    const auto& name = parameter.key();
    auto value = parameter.value().detach();
    const bool is_rotated = architecture == "llama";
    if (is_rotated && name.find("q_proj") != std::string::npos) value = interleaved(value, heads);
    if (is_rotated && name.find("k_proj") != std::string::npos) value = interleaved(value, key_heads);
    file.add(gguf_name(name), value);
  }
  return file;
}

void check_equal(const models::PretrainedModel& model, const models::PretrainedModel& expected) {
  const auto parameters = expected.named_parameters();
  CHECK(model.named_parameters().size() == parameters.size());
  for (const auto& parameter : model.named_parameters()) {
    INFO(parameter.key());
    CHECK(at::equal(parameter.value(), parameters[parameter.key()]));
  }
}

/// A small Llama with random weights, whose config.json is in the folder.
std::shared_ptr<models::PretrainedModel> llama_in(const fs::path& folder) {
  fs::create_directories(folder);
  std::ofstream(folder / "config.json") << R"({
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 40, "hidden_size": 24, "intermediate_size": 20,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64,
    "rms_norm_eps": 1e-05, "rope_theta": 5000.0, "tie_word_embeddings": false, "eos_token_id": 3})";
  at::manual_seed(4);
  auto model = models::from_config(folder);
  model->eval();
  return model;
}

/// A file with metadata that describe llama_in().
test::GgufFile described_llama(const models::PretrainedModel& model) {
  auto file = gguf_file(model, "llama");
  file.set("llama.embedding_length", 24);
  file.set("llama.feed_forward_length", 20);
  file.set("llama.block_count", 2);
  file.set("llama.context_length", 64);
  file.set("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  file.set("llama.rope.freq_base", 5000.0F);
  file.set("tokenizer.ggml.eos_token_id", 3);
  return file;
}

}  // namespace

TEST_CASE("a model is loaded from a GGUF file and config.json") {
  std::size_t compared = 0;
  for (const auto& one : test::model_cases()) {
    const auto expected = models::from_pretrained(one.folder);
    const auto& name = expected->config().architecture;
    const bool is_llama = name.starts_with("Llama") || name.starts_with("Mistral");
    if (!(is_llama || name.starts_with("Qwen")) || !expected->config().is_causal) continue;
    INFO(one.folder.string());
    const test::OwnFolder folder("gguf-model");
    fs::create_directories(folder.path);
    fs::copy_file(one.folder / "config.json", folder.path / "config.json");
    gguf_file(*expected, is_llama                    ? "llama"
                         : name.starts_with("Qwen2") ? "qwen2"
                                                     : "qwen3")
        .write(folder.path / "model.gguf");
    const auto model = models::from_pretrained(folder.path);
    check_equal(*model, *expected);
    CHECK(at::equal(model->forward(one.inputs()).logits, expected->forward(one.inputs()).logits));
    ++compared;
  }
  CHECK(compared > 0);
}

TEST_CASE("a GGUF file without config.json describes its model") {
  const test::OwnFolder folder("gguf-described");
  const auto expected = llama_in(folder.path);
  const auto path = folder.path / "weights.gguf";
  described_llama(*expected).write(path);
  fs::remove(folder.path / "config.json");
  const auto ids = at::arange(12).view({2, 6});
  for (const auto& place : {path, folder.path}) {
    const auto model = models::from_pretrained(place);
    check_equal(*model, *expected);
    CHECK(at::equal(model->forward({.input_ids = ids}).logits, expected->forward({.input_ids = ids}).logits));
    CHECK(model->config().eos_token_ids == std::vector<std::int64_t>{3});
    CHECK(model->config().max_positions == 64);
  }
  const auto half = models::from_pretrained(path, {.dtype = at::kBFloat16});
  CHECK(half->parameters().front().scalar_type() == at::kBFloat16);
}

TEST_CASE("a GGUF file whose metadata do not describe a known model asks for config.json") {
  const test::OwnFolder folder("gguf-undescribed");
  const auto expected = llama_in(folder.path);
  fs::remove(folder.path / "config.json");
  const auto path = folder.path / "weights.gguf";
  gguf_file(*expected, "llama").write(path);
  CHECK_THROWS_WITH(models::from_pretrained(path),
                    ContainsSubstring("'llama.embedding_length'") && ContainsSubstring("config.json"));
  auto scaled = described_llama(*expected);
  scaled.set("llama.rope.scaling.type", "yarn");
  scaled.write(path);
  CHECK_THROWS_WITH(models::from_pretrained(path), ContainsSubstring("scales RoPE"));
  test::GgufFile other;
  other.set("general.architecture", "gemma");
  other.write(path);
  CHECK_THROWS_WITH(models::from_pretrained(path), ContainsSubstring("'gemma', expected llama"));
}

TEST_CASE("a head is put on a checkpoint of any family") {
  for (const auto& one : test::model_cases()) {
    const auto name = models::from_pretrained(one.folder)->config().architecture;
    if (!name.starts_with("Bert") && !name.starts_with("Llama") && !name.starts_with("GPT2")) continue;
    const auto model = models::from_pretrained(one.folder, {.num_labels = 3, .head = "ForSequenceClassification"});
    const auto family = name.substr(0, name.starts_with("Llama") ? 5 : 4);
    CHECK(model->config().architecture == family + "ForSequenceClassification");
    CHECK(model->config().num_labels == 3);
    CHECK_THROWS_WITH(models::from_pretrained(one.folder, {.head = "ForNothing"}),
                      ContainsSubstring("There is no 'ForNothing' for a " + name));
  }
}
