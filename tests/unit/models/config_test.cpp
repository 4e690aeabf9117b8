// config.json: what is refused, and models made from it.
#include <ATen/ATen.h>

#include <fstream>
#include <hortator/bigmodel/deferred_construction.hpp>
#include <hortator/error.hpp>
#include <hortator/models/pretrained.hpp>
#include <nlohmann/json.hpp>

#include "cases.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

using namespace hortator;
using nlohmann::json;

namespace {

const json small_llama = {{"architectures", {"LlamaForCausalLM"}},
                          {"model_type", "llama"},
                          {"vocab_size", 16},
                          {"hidden_size", 8},
                          {"intermediate_size", 12},
                          {"num_hidden_layers", 1},
                          {"num_attention_heads", 2},
                          {"max_position_embeddings", 32}};
const json small_bert = {{"architectures", {"BertForMaskedLM"}},
                         {"vocab_size", 16},
                         {"hidden_size", 8},
                         {"intermediate_size", 12},
                         {"num_hidden_layers", 1},
                         {"num_attention_heads", 2}};
const json small_resnet = {{"architectures", {"ResNetForImageClassification"}},
                           {"hidden_sizes", {64, 128, 256, 512}},
                           {"depths", {2, 2, 2, 2}},
                           {"layer_type", "basic"},
                           {"num_labels", 5}};

std::shared_ptr<models::PretrainedModel> made(const json& config, const models::PretrainedOptions& options = {}) {
  const test::OwnFolder folder("config");
  std::filesystem::create_directories(folder.path);
  std::ofstream(folder.path / "config.json") << config;
  return models::from_config(folder.path, options);
}

std::string error_of(const json& config) {
  try {
    made(config);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

json changed(json config, const std::string& name, const json& value) {
  config[name] = value;
  return config;
}

}  // namespace

TEST_CASE("notes of the programs that wrote a config.json are ignored") {
  for (const auto* name :
       {"_name_or_path", "_model_name_or_path", "_commit_hash", "_attn_implementation", "unsloth_version"})
    CHECK(error_of(changed(small_llama, name, "sdpa")) == "no error");
}

TEST_CASE("an unknown architecture or field is an error that lists the known ones") {
  CHECK_THAT(error_of(changed(small_llama, "architectures", {"LlamaForEverything"})),
             ContainsSubstring("'LlamaForEverything'") && ContainsSubstring("BertForSequenceClassification"));
  CHECK_THAT(error_of(changed(small_llama, "logit_softcap", 30)),
             ContainsSubstring("'logit_softcap' (30)") && ContainsSubstring("rope_theta"));
  CHECK_THAT(error_of(changed(small_llama, "rope_scaling", {{"rope_type", "longrope"}, {"factor", 2}})),
             ContainsSubstring("'rope_scaling.rope_type'") && ContainsSubstring("llama3"));
  CHECK_THAT(error_of(changed(small_llama, "rope_scaling", {{"type", "linear"}, {"factor", 2}, {"twist", 1}})),
             ContainsSubstring("'rope_scaling.twist'"));
  CHECK_THAT(error_of(changed(small_llama, "hidden_act", "selu")), ContainsSubstring("gelu_new"));
  CHECK_THAT(error_of(changed(small_llama, "hidden_size", 7)), ContainsSubstring("'hidden_size' is 7"));
  CHECK_THAT(error_of(changed(small_llama, "vocab_size", nullptr)), ContainsSubstring("no field 'vocab_size'"));
  CHECK_THAT(error_of(changed(small_llama, "num_hidden_layers", 1'000'000)), ContainsSubstring("at most 4096"));
  CHECK_THAT(error_of(changed(small_llama, "model_type", "mamba")), ContainsSubstring("'model_type'"));
  CHECK_THAT(error_of(changed(small_bert, "position_embedding_type", "relative_key")),
             ContainsSubstring("only \"absolute\""));
  CHECK_THAT(error_of(json::array()), ContainsSubstring("not a valid JSON object"));
  CHECK_THAT(error_of(json::object()), ContainsSubstring("architectures"));
}

TEST_CASE("a size that is far too large is an error that names the field and its value") {
  const auto check = [](json config, const std::string& field, const json& value, const std::string& expected) {
    config[field] = value;
    INFO(field);
    CHECK_THAT(error_of(config),
               ContainsSubstring("'" + field + "' is " + value.dump()) && ContainsSubstring(expected));
  };
  constexpr std::int64_t absurd = 2147483647;
  const std::string limit = "expected at most 268435456";
  for (const auto* field : {"vocab_size", "hidden_size", "intermediate_size", "num_attention_heads"}) {
    check(small_llama, field, absurd, limit);
    check(small_bert, field, absurd, limit);
  }
  check(small_llama, "head_dim", std::int64_t{1} << 28, "expected at most 268435456 / num_attention_heads");
  check(small_bert, "max_position_embeddings", absurd, limit);
  check(small_bert, "type_vocab_size", absurd, limit);
  check(small_resnet, "num_labels", absurd, limit);
  check(small_resnet, "hidden_sizes", {64, 128, 256, absurd}, limit);
  CHECK(error_of(changed(small_llama, "max_position_embeddings", absurd)) == "no error");  // no weight has this size

  const std::int64_t large = std::int64_t{1} << 28;
  check(changed(small_llama, "hidden_size", large), "vocab_size", large - 16, "'hidden_size' is 268435456");
  const auto wide = changed(changed(small_bert, "hidden_size", large), "vocab_size", large);
  CHECK_THAT(error_of(wide), ContainsSubstring("(DefaultCPUAllocator: "));
  CHECK_THROWS_AS(construct_deferred([&] { return made(wide); }), UsageError);
}

TEST_CASE("fields that change nothing, and those that are null, are accepted") {
  auto config = changed(small_llama, "transformers_version", "5.0.0");
  config["use_cache"] = false;
  config["logit_softcap"] = nullptr;
  config["rope_scaling"] = nullptr;
  config["rope_theta"] = 500000.0;
  CHECK(error_of(config) == "no error");
}

TEST_CASE("the older names of RoPE scaling mean the same as the newer ones") {
  const auto older =
      changed(changed(small_llama, "rope_theta", 100.0), "rope_scaling", {{"type", "linear"}, {"factor", 3.0}});
  const auto newer =
      changed(small_llama, "rope_parameters", {{"rope_type", "linear"}, {"factor", 3.0}, {"rope_theta", 100.0}});
  const auto model = made(older), other = made(newer), plain = made(small_llama);
  const at::NoGradGuard no_grad;
  const auto parameters = model->named_parameters();
  for (const auto& parameter : parameters) parameter.value().normal_();
  for (const auto& each : {other, plain}) {
    for (const auto& parameter : each->named_parameters()) parameter.value().copy_(parameters[parameter.key()]);
  }
  const models::ModelInputs inputs{.input_ids = at::arange(12).view({1, 12})};
  CHECK(at::allclose(model->forward(inputs).logits, other->forward(inputs).logits));
  CHECK_FALSE(at::allclose(model->forward(inputs).logits, plain->forward(inputs).logits));
}

TEST_CASE("a checkpoint gets another head, whose weights are new") {
  const test::OwnFolder folder("new-head");
  const auto masked = made(small_bert);
  models::save_pretrained(*masked, folder.path);
  const auto model =
      models::from_pretrained(folder.path, {.architecture = "BertForSequenceClassification", .num_labels = 3});
  CHECK(model->config().num_labels == 3);
  CHECK(model->forward({.input_ids = at::ones({2, 4}, at::kLong)}).logits.sizes() == at::IntArrayRef({2, 3}));
  const auto table = "bert.embeddings.word_embeddings.weight";
  CHECK(at::equal(model->named_parameters()[table], masked->named_parameters()[table]));
  CHECK(model->named_parameters()["classifier.weight"].abs().sum().item<double>() > 0);

  SECTION("and the model without a head") {
    const auto bare = models::from_pretrained(folder.path, {.architecture = "BertModel"});
    CHECK(bare->forward({.input_ids = at::ones({2, 4}, at::kLong)}).pooler_output.sizes() == at::IntArrayRef({2, 8}));
    const test::OwnFolder without("without-head");
    models::save_pretrained(*bare, without.path);
    const auto again = models::from_pretrained(without.path, {.architecture = "BertForTokenClassification"});
    CHECK(at::equal(again->named_parameters()[table], masked->named_parameters()[table]));
  }
  SECTION("of another size") {
    const test::OwnFolder three("three-labels");
    models::save_pretrained(*model, three.path);
    CHECK_THROWS_WITH(
        models::from_pretrained(three.path, {.architecture = "BertForMaskedLM", .num_labels = 3, .dtype = at::kLong}),
        ContainsSubstring("dtype"));
    const auto five = models::from_pretrained(three.path, {.num_labels = 5});
    CHECK(five->named_parameters()["classifier.weight"].size(0) == 5);
  }
}

TEST_CASE("weights of another model are an error with all names") {
  const test::OwnFolder folder("wrong-weights");
  models::save_pretrained(*made(small_llama), folder.path);
  std::ofstream(folder.path / "config.json")
      << changed(changed(small_llama, "attention_bias", true), "intermediate_size", 20);
  CHECK_THROWS_WITH(
      models::from_pretrained(folder.path),
      ContainsSubstring("q_proj.bias") && ContainsSubstring("unlike 'model.layers.0.mlp.gate_proj.weight'"));
  std::ofstream(folder.path / "config.json") << changed(small_llama, "num_hidden_layers", 2);
  CHECK_THROWS_WITH(models::from_pretrained(folder.path),
                    ContainsSubstring("missing 'model.layers.1.self_attn.q_proj.weight'"));
  CHECK_THROWS_WITH(models::from_pretrained(folder.path / "nowhere"), ContainsSubstring("config.json"));
}

TEST_CASE("an output layer that the file has, and the model ties, must be equal to the embedding") {
  const test::OwnFolder folder("tied");
  models::save_pretrained(*made(small_llama), folder.path);
  std::ofstream(folder.path / "config.json") << changed(small_llama, "tie_word_embeddings", true);
  CHECK_THROWS_WITH(models::from_pretrained(folder.path), ContainsSubstring("'lm_head.weight'"));
}

TEST_CASE("weights are converted to the wanted type") {
  const test::OwnFolder folder("types");
  const auto model = made(small_bert);
  models::save_pretrained(*model, folder.path);
  const auto half =
      models::from_pretrained(folder.path, {.architecture = "BertForSequenceClassification", .dtype = at::kBFloat16});
  const auto stored = model->named_parameters();
  for (const auto& parameter : half->named_parameters()) {
    INFO(parameter.key());
    CHECK(parameter.value().scalar_type() == at::kBFloat16);
    const auto* before = stored.find(parameter.key());
    if (before != nullptr) CHECK(at::equal(parameter.value(), before->to(at::kBFloat16)));
  }
  CHECK(half->forward({.input_ids = at::ones({1, 3}, at::kLong)}).logits.isfinite().all().item<bool>());
}

TEST_CASE("ResNet computes the same under the names of torchvision as under those of transformers") {
  const auto ours = made(small_resnet), theirs = made({{"architecture", "resnet18"}, {"num_classes", 5}});
  const at::NoGradGuard no_grad;
  const auto parameters = ours->parameters(), others = theirs->parameters();
  CHECK(parameters.size() == others.size());
  // Both register a block's layers in order, with the shortcut last or first: match by shape and order within a stage.
  for (const auto& parameter : ours->named_parameters()) parameter.value().normal_(0.5, 0.05);
  const std::vector<std::pair<std::string, std::string>> stems = {{"resnet.embedder.embedder.convolution", "conv1"},
                                                                  {"resnet.embedder.embedder.normalization", "bn1"},
                                                                  {"classifier.1", "fc"}};
  std::map<std::string, at::Tensor> named;
  for (const auto& parameter : ours->named_parameters()) named[parameter.key()] = parameter.value();
  const auto copy = [&](const std::string& from, const std::string& to) {
    for (const auto* part : {".weight", ".bias"}) {
      if (!named.contains(from + part)) continue;
      auto all = theirs->named_parameters();
      REQUIRE(all.contains(to + part));
      all[to + part].copy_(named.at(from + part));
    }
  };
  for (const auto& [from, to] : stems) copy(from, to);
  for (int stage = 0; stage < 4; ++stage) {
    for (int block = 0; block < 2; ++block) {
      const auto from = "resnet.encoder.stages." + std::to_string(stage) + ".layers." + std::to_string(block);
      const auto to = "layer" + std::to_string(stage + 1) + "." + std::to_string(block);
      for (int layer = 0; layer < 2; ++layer) {
        copy(from + ".layer." + std::to_string(layer) + ".convolution", to + ".conv" + std::to_string(layer + 1));
        copy(from + ".layer." + std::to_string(layer) + ".normalization", to + ".bn" + std::to_string(layer + 1));
      }
      copy(from + ".shortcut.convolution", to + ".downsample.0");
      copy(from + ".shortcut.normalization", to + ".downsample.1");
    }
  }
  ours->train();
  theirs->train();
  const models::ModelInputs inputs{.pixel_values = at::randn({2, 3, 40, 40})};
  CHECK(at::allclose(ours->forward(inputs).logits, theirs->forward(inputs).logits, 1e-4, 1e-4));
}
