// Adapters of users' own modules: added, switched, merged, moved, deleted, and what is refused.
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include <fstream>
#include <hortator/bigmodel/offload.hpp>
#include <hortator/bigmodel/safetensors_file.hpp>
#include <hortator/lora.hpp>
#include <hortator/models/exported.hpp>
#include <map>

#include "adapters/targets.hpp"
#include "formats/safetensors/writer.hpp"
#include "mpi/communicator.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

using namespace hortator;
using Catch::Matchers::Contains;

namespace {

/// Every kind of layer that an adapter can change, as users write them.
struct AdaptableNetImpl : torch::nn::Module {
  AdaptableNetImpl() {
    torch::manual_seed(1);
    tokens = register_module("tokens", torch::nn::Embedding(11, 8));
    first = register_module("first", torch::nn::Linear(8, 8));
    plain = register_module("plain", torch::nn::Linear(torch::nn::LinearOptions(8, 6).bias(false)));
    mixer = register_module("mixer", torch::nn::Conv1d(torch::nn::Conv1dOptions(6, 4, 3).padding(1)));
    matrix = register_parameter("matrix", at::randn({4, 4}));
    own = register_module("own", std::make_shared<torch::nn::Module>());
    own->register_parameter("weight", at::randn({3, 4}));
  }
  at::Tensor forward(const at::Tensor& ids) {
    const auto x = at::tanh(first(tokens(ids)));
    const auto y = mixer(plain(x).transpose(1, 2)).transpose(1, 2);
    const auto rows = y.reshape({-1, 4}).mm(matrix);
    return at::mm(rows, own->named_parameters()["weight"].t());
  }
  torch::nn::Embedding tokens{nullptr};
  torch::nn::Linear first{nullptr}, plain{nullptr};
  torch::nn::Conv1d mixer{nullptr};
  at::Tensor matrix;
  std::shared_ptr<torch::nn::Module> own;
};
TORCH_MODULE(AdaptableNet);

/// Scores by the weight of its embedding.
struct TiedNetImpl : torch::nn::Module, HasTiedLayers {
  TiedNetImpl() {
    torch::manual_seed(1);
    tokens = register_module("tokens", torch::nn::Embedding(11, 8));
  }
  std::map<std::string, at::Tensor> tied_layers() const override { return {{"scores", tokens->weight}}; }
  at::Tensor forward(const at::Tensor& ids) { return at::linear(tokens(ids), tokens->weight); }
  torch::nn::Embedding tokens{nullptr};
};
TORCH_MODULE(TiedNet);

struct TwiceTiedNetImpl : TiedNetImpl {
  std::map<std::string, at::Tensor> tied_layers() const override {
    return {{"scores", tokens->weight}, {"again", tokens->weight}};
  }
};
TORCH_MODULE(TwiceTiedNet);

at::Tensor some_ids() { return at::arange(10).remainder(11).view({2, 5}); }

/// Gives every factor of the adapters values.
void fill_adapters(const torch::nn::Module& net, int seed) {
  const at::NoGradGuard no_grad;
  torch::manual_seed(seed);
  for (const auto& item : net.named_parameters())
    if (item.key().find("lora_") != std::string::npos) item.value().normal_(0, 0.3);
}

/// What the layer's weight is with its adapter, computed from the parameters.
at::Tensor weight_with(const torch::nn::Module& net, const std::string& layer, const std::string& adapter,
                       double scale) {
  const auto all = net.named_parameters();
  const auto get = [&](const std::string& name) {
    return all[(layer == "scores" && name == "weight" ? "tokens" : layer) + "." + name].detach();
  };
  if (layer == "tokens")
    return get("weight") + scale * at::mm(get("lora_embedding_B." + adapter), get("lora_embedding_A." + adapter)).t();
  const auto a = get("lora_A." + adapter + ".weight"), b = get("lora_B." + adapter + ".weight");
  return get("weight") + scale * at::mm(b.flatten(1), a.flatten(1)).view(get("weight").sizes());
}

const std::vector<std::string>& every_layer() {
  static const std::vector<std::string> all = {"tokens", "first", "plain", "mixer", "own"};
  return all;
}

bool is_near(const at::Tensor& one, const at::Tensor& other) { return at::allclose(one, other, 1e-4, 1e-5); }

}  // namespace

TEST_CASE("an adapter changes the weights of every kind of layer, whatever operator reads them") {
  for (const auto& layer : every_layer()) {
    INFO(layer);
    AdaptableNet net, expected;
    lora(net, {.rank = 2, .alpha = 6, .targets = {layer}});
    CHECK(is_near(net(some_ids()), expected(some_ids())));  // at first nothing changes
    fill_adapters(*net, 2);
    expected->named_parameters()[layer + ".weight"].set_data(weight_with(*net, layer, "default", 3));
    CHECK(is_near(net(some_ids()), expected(some_ids())));

    // gradients by the factors follow from those by the weight
    net(some_ids()).square().sum().backward();
    expected(some_ids()).square().sum().backward();
    const auto by_weight = expected->named_parameters()[layer + ".weight"].grad();
    const auto all = net->named_parameters();
    for (const auto& item : all)
      CHECK(item.value().grad().defined() == (item.key().find(".lora_") != std::string::npos));
    const bool is_table = layer == "tokens";
    const auto a = all[layer + (is_table ? ".lora_embedding_A.default" : ".lora_A.default.weight")];
    const auto b = all[layer + (is_table ? ".lora_embedding_B.default" : ".lora_B.default.weight")];
    const auto rows = is_table ? by_weight.t() : by_weight.flatten(1);
    CHECK(is_near(a.grad().flatten(1), 3 * at::mm(b.detach().flatten(1).t(), rows)));
    CHECK(is_near(b.grad().flatten(1), 3 * at::mm(rows, a.detach().flatten(1).t())));
  }
}

TEST_CASE("several adapters are added, switched, disabled, merged and deleted") {
  AdaptableNet net;
  const auto base = net(some_ids());
  lora(net, {.rank = 2, .targets = {"first", "mixer"}, .name = "one"});
  lora(net, {.rank = 4, .targets = {"first", "tokens"}, .name = "two"});
  fill_adapters(*net, 3);
  CHECK(adapter_names(net) == std::vector<std::string>{"two", "one"});  // in the order of the layers
  CHECK(active_adapters(net) == std::vector<std::string>{"two"});
  const auto two = net(some_ids());
  set_adapter(net, "one");
  const auto one = net(some_ids());
  CHECK(!is_near(one, two));
  for (const auto& item : net->named_parameters())
    CHECK(item.value().requires_grad() == (item.key().find(".one") != std::string::npos));
  set_adapters(net, {"one", "two"});
  const auto both = net(some_ids());
  {
    const AdaptersDisabled disabled(net);
    CHECK(at::equal(net(some_ids()), base));
  }
  CHECK(at::equal(net(some_ids()), both));
  merge_adapters(net);
  CHECK(is_near(net(some_ids()), both));
  unmerge_adapters(net);
  CHECK(is_near(net(some_ids()), both));
  merge_adapters(net, {"two"});
  delete_adapter(net, "one");
  CHECK(is_near(net(some_ids()), two));
  unmerge_adapters(net);
  delete_adapter(net, "two");
  CHECK(is_near(net(some_ids()), base));
  CHECK(net->named_parameters().size() == AdaptableNet()->named_parameters().size());
  CHECK(adapter_names(net).empty());
}

TEST_CASE("an adapter that is merged is not switched off or deleted, and others compute beside it") {
  AdaptableNet net;
  lora(net, {.rank = 2, .targets = {"first"}, .name = "one"});
  fill_adapters(*net, 3);
  const auto with_one = net(some_ids()).detach();
  merge_adapters(net);
  CHECK_THROWS_WITH(AdaptersDisabled(net), Contains("'one' was to be switched off, and is merged"));
  CHECK_THROWS_WITH(set_adapters(net, {}), Contains("unmerge_adapters()"));
  CHECK_THROWS_WITH(delete_adapter(net, "one"), Contains("merged into the weights"));
  lora(net, {.rank = 2, .targets = {"first", "plain"}, .name = "two"});
  CHECK(is_near(net(some_ids()), with_one));
  net(some_ids()).sum().backward();
  CHECK(net->named_parameters()["first.lora_B.two.weight"].grad().defined());
  unmerge_adapters(net);
  fill_adapters(*net, 4);
  set_adapters(net, {"one", "two"});
  const auto both = net(some_ids());
  merge_adapters(net, {"two"});
  CHECK(is_near(net(some_ids()), both));
  unmerge_adapters(net);
  delete_adapter(net, "one");
  set_adapter(net, "two");
  const auto with_two = net(some_ids());
  merge_adapters(net);
  CHECK(is_near(net(some_ids()), with_two));
}

TEST_CASE("an embedding and the scores that share its weight have adapters of their own, which are not merged") {
  TiedNet net;
  lora(net, {.rank = 2, .targets = {"tokens", "scores"}, .name = "both"});
  fill_adapters(*net, 5);
  const auto both = net(some_ids()).detach();
  TiedNet expected;
  const auto table = weight_with(*net, "tokens", "both", 4), matrix = weight_with(*net, "scores", "both", 4);
  CHECK(is_near(both, at::linear(at::embedding(table, some_ids()), matrix)));
  CHECK_THROWS_WITH(merge_adapters(net), Contains("share one weight"));
  delete_adapter(net, "both");
  lora(net, {.rank = 2, .targets = {"tokens"}, .name = "table"});
  lora(net, {.rank = 2, .targets = {"scores"}, .name = "matrix"});
  fill_adapters(*net, 6);
  for (const auto& [name, layer] : {std::pair("table", "tokens"), {"matrix", "scores"}}) {
    set_adapter(net, name);
    const auto changed = weight_with(*net, layer, name, 4);
    const auto& own = net->tokens->weight.detach();
    const bool is_table = std::string(layer) == "tokens";
    CHECK(is_near(net(some_ids()),
                  at::linear(at::embedding(is_table ? changed : own, some_ids()), is_table ? own : changed)));
  }
  TwiceTiedNet twice;
  CHECK_THROWS_WITH(lora(twice, {.targets = {"scores", "again"}}), Contains("share one weight"));
  CHECK(adapter_names(twice).empty());
}

/// As a head of DistilBERT is made.
struct TwoHeadsImpl : torch::nn::Module {
  TwoHeadsImpl() {
    torch::manual_seed(1);
    query = register_module("query", torch::nn::Linear(4, 4));
    pre_classifier = register_module("pre_classifier", torch::nn::Linear(4, 4));
    classifier = register_module("classifier", torch::nn::Linear(4, 2));
  }
  at::Tensor forward(const at::Tensor& x) { return classifier(at::relu(pre_classifier(query(x)))); }
  torch::nn::Linear query{nullptr}, pre_classifier{nullptr}, classifier{nullptr};
};
TORCH_MODULE(TwoHeads);

TEST_CASE("modules_to_save are ends of names, and peft names heads of other models as well") {
  TwoHeads net;
  lora(net, {.targets = {"query"}, .modules_to_save = {"classifier", "score"}});
  for (const auto* name : {"classifier.weight", "pre_classifier.weight", "pre_classifier.bias"})
    CHECK(net->named_parameters()[name].requires_grad());
  CHECK(!net->named_parameters()["query.weight"].requires_grad());
  const test::OwnFolder folder("saved-modules");
  save_adapter(net, folder.path);
  const auto stored = SafetensorsFile(folder.path / "adapter_model.safetensors").names();
  CHECK(std::ranges::find(stored, "base_model.model.pre_classifier.weight") != stored.end());
  TwoHeads none;
  CHECK_THROWS_WITH(lora(none, {.targets = {"query"}, .modules_to_save = {"score"}}), Contains("no module 'score'"));
  CHECK(adapter_names(none).empty());
  TiedNet tied;
  CHECK_THROWS_WITH(lora(tied, {.targets = {"scores"}, .modules_to_save = {"tokens"}}), Contains("which is tied"));
}

TEST_CASE("biases that peft has left out of its file stay the model's") {
  TwoHeads net;
  lora(net, {.targets = {"query"}, .bias = LoraBias::lora_only});
  fill_adapters(*net, 3);
  const auto expected = net(at::ones({1, 4}));
  const test::OwnFolder folder("without-biases");
  save_adapter(net, folder.path);
  std::map<std::string, at::Tensor> kept;
  {
    const SafetensorsFile file(folder.path / "adapter_model.safetensors");
    for (const auto& name : file.names())
      if (!name.ends_with(".bias")) kept.emplace(name, file.get(name).clone());
  }
  std::map<std::string, formats::TensorSpec> specs;
  for (const auto& [name, tensor] : kept) specs.emplace(name, formats::spec_of(tensor));
  const auto file = folder.path / "adapter_model.safetensors";
  std::filesystem::remove(file);
  formats::write_safetensors(mpi::Communicator::world(), {{.path = file, .plan = formats::plan_safetensors(specs)}},
                             [&](const std::string& name) { return kept.at(name); });
  TwoHeads other;
  load_adapter(other, folder.path);
  CHECK(is_near(other(at::ones({1, 4})), expected));
}

TEST_CASE("what peft refuses in a configuration is refused") {
  AdaptableNet net;
  CHECK_THROWS_WITH(lora(net, {.targets = {"first"}, .use_dora = true, .lora_bias = true}), Contains("lora_bias"));
  CHECK_THROWS_WITH(lora(net, {.targets = {"all-linear"}, .layers_to_transform = {0}}), Contains("all-linear"));
  CHECK_THROWS_WITH(lora(net, {.targets = {"first"}, .layers_pattern = {"layers"}}),
                    Contains("layers_pattern without layers_to_transform"));
}

TEST_CASE("adapters stay when a model is moved, converted and offloaded") {
  AdaptableNet net;
  lora(net, {.targets = every_layer()});
  fill_adapters(*net, 4);
  const auto expected = net(some_ids()).detach();
  const at::NoGradGuard no_grad;
  net->to(at::kDouble);
  CHECK(is_near(net(some_ids()), expected.to(at::kDouble)));
  net->to(at::kCPU, at::kFloat);
  CHECK(is_near(net(some_ids()), expected));
  const test::OwnFolder folder("offloaded-adapters");
  {
    const auto offload = disk_offload(net, folder.path);
    CHECK(is_near(net(some_ids()), expected));
    CHECK_THROWS_WITH(merge_adapters(net), Contains("sharded or offloaded"));
  }
}

TEST_CASE("an adapter of a model in 16 bits is kept in float32") {
  AdaptableNet net;
  net->to(at::kBFloat16);
  lora(net, {.targets = {"first", "plain"}});
  for (const auto& parameter : trainable_parameters(net)) CHECK(parameter.scalar_type() == at::kFloat);
  fill_adapters(*net, 5);
  const auto result = net(some_ids());
  CHECK(result.scalar_type() == at::kBFloat16);
  result.sum().backward();
  for (const auto& parameter : trainable_parameters(net)) CHECK(parameter.grad().defined());
}

TEST_CASE("layers of an exported program get adapters") {
  for (const auto* name : {"mlp", "attention"}) {
    INFO(name);
    const std::filesystem::path files = EXPORTED_FILES;
    const auto net = exported_module(files / (std::string(name) + ".pt2"));
    const SafetensorsFile tensors(files / (std::string(name) + ".safetensors"));
    const auto run = [&] { return net->forward(tensors.get("input_0"))[0].detach().clone(); };
    const auto base = run();
    std::vector<std::string> matrices;
    for (const auto& item : net->named_parameters())
      if (item.value().dim() == 2 && item.key().ends_with(".weight"))
        matrices.push_back(item.key().substr(0, item.key().size() - std::string(".weight").size()));
    REQUIRE(!matrices.empty());
    lora(net, {.targets = matrices});
    CHECK(is_near(run(), base));
    fill_adapters(*net, 7);
    const auto adapted = run();
    CHECK(!is_near(adapted, base));
    merge_adapters(net);
    CHECK(is_near(run(), adapted));
  }
}

TEST_CASE("dropout of an adapter is on in training only") {
  AdaptableNet net;
  lora(net, {.dropout = 0.5, .targets = {"first"}});
  fill_adapters(*net, 6);
  net->eval();
  CHECK(at::equal(net(some_ids()), net(some_ids())));
  net->train();
  CHECK(!at::equal(net(some_ids()), net(some_ids())));
}

TEST_CASE("mistakes with adapters are errors that name the fix") {
  AdaptableNet net;
  CHECK_THROWS_WITH(lora(net, {.targets = {"q_proj"}}), Contains("q_proj") && Contains("tokens, first, plain, mixer"));
  CHECK_THROWS_WITH(lora(net), Contains("targets is empty"));
  CHECK_THROWS_WITH(lora(net, {.rank = 0, .targets = {"first"}}), Contains("rank: expected a whole number from 1"));
  CHECK_THROWS_WITH(lora(net, {.dropout = 1, .targets = {"first"}}), Contains("dropout"));
  CHECK_THROWS_WITH(lora(net, {.target_pattern = "(first"}), Contains("regular expression"));
  CHECK_THROWS_WITH(lora(net, {.targets = {"first"}, .target_pattern = "first"}), Contains("both"));
  CHECK_THROWS_WITH(lora(net, {.targets = {"tokens"}, .use_dora = true}), Contains("use_dora"));
  CHECK_THROWS_WITH(lora(net, {.targets = {"first"}, .modules_to_save = {"head"}}), Contains("modules_to_save"));
  CHECK_THROWS_WITH(lora(net, {.targets = {"first"}, .name = "a.b"}), Contains("without dots"));
  CHECK(adapter_names(net).empty());
  CHECK(net->named_parameters().size() == AdaptableNet()->named_parameters().size());
  lora(net, {.targets = {"first"}, .bias = LoraBias::all});
  CHECK_THROWS_WITH(lora(net, {.targets = {"first"}}), Contains("already"));
  CHECK_THROWS_WITH(lora(net, {.targets = {"first"}, .name = "second"}), Contains("bias or modules_to_save"));
  CHECK_THROWS_WITH(set_adapter(net, "defualt"), Contains("did you mean 'default'"));
  CHECK_THROWS_WITH(AdaptersDisabled(net), Contains("switched off"));
}

TEST_CASE("files of adapters that do not fit are refused with every name, and the model stays as it was") {
  const test::OwnFolder folder("adapter-files");
  AdaptableNet net;
  lora(net, {.rank = 2, .targets = {"first", "plain"}});
  save_adapter(net, folder.path);
  struct OtherImpl : torch::nn::Module {
    OtherImpl() {
      register_module("first", torch::nn::Linear(8, 9));
      register_module("plain", torch::nn::Linear(8, 6));
    }
  };
  OtherImpl other;
  CHECK_THROWS_WITH(load_adapter(other, folder.path),
                    Contains("first.lora_B.weight' has the shape [8, 2], expected [9, 2]"));
  CHECK(other.named_parameters().size() == 4);
  CHECK_THROWS_WITH(load_adapter(net, folder.path / "none", {.name = "other"}), Contains("adapter_config.json"));
  const auto config = folder.path / "adapter_config.json";
  const auto refuse = [&](const std::string& json, const std::string& expected) {
    std::ofstream(config) << json;
    AdaptableNet fresh;
    CHECK_THROWS_WITH(load_adapter(fresh, folder.path), Contains(expected));
    CHECK(adapter_names(fresh).empty());
  };
  refuse(R"({"peft_type": "IA3", "target_modules": ["first"]})", "'peft_type'");
  refuse(R"({"r": 2, "target_modules": ["first"]})",
         "the model has nothing for 'base_model.model.plain.lora_A.weight'");
  refuse(R"({"r": 2, "target_modules": ["first", "plain", "own"]})", "own.lora_A.weight' is missing");
  refuse(R"({"r": 4, "target_modules": ["first", "plain"]})", "expected [4, 8]");
  refuse(R"({"r": 2, "target_modules": ["first"], "init_lora_weights": "pissa"})", "init_lora_weights");
  refuse(R"({"r": 2, "target_modules": ["first"], "layer_replication": [[0, 1]]})", "layer_replication");
  refuse(R"({"r": "2", "target_modules": ["first"]})", "a whole number");
  refuse("[]", "is not a JSON object");
}

TEST_CASE("layers are chosen as peft chooses them") {
  const auto chosen = [](const LoraOptions& options, const char* name) { return adapters::is_target(options, name); };
  const auto* const q = "model.layers.11.self_attn.q_proj";
  CHECK(chosen({.targets = {"q_proj"}}, q));
  CHECK(chosen({.targets = {"self_attn.q_proj"}}, q));
  CHECK(chosen({.targets = {q}}, q));
  CHECK(!chosen({.targets = {"proj"}}, q));
  CHECK(!chosen({.targets = {"attn.q_proj"}}, q));
  CHECK(chosen({.target_pattern = R"(.*\.(q|v)_proj)"}, q));
  CHECK(!chosen({.target_pattern = R"(q_proj)"}, q));
  CHECK(!chosen({.targets = {"q_proj"}, .exclude = {"q_proj"}}, q));
  CHECK(!chosen({.targets = {"q_proj"}, .exclude_pattern = R"(.*\.11\..*)"}, q));
  CHECK(chosen({.targets = {"q_proj"}, .layers_to_transform = {11}}, q));
  CHECK(!chosen({.targets = {"q_proj"}, .layers_to_transform = {1}}, q));
  CHECK(chosen({.targets = {q}, .layers_to_transform = {1}}, q));  // peft does not ask for the layer then
  CHECK(chosen({.targets = {"q_proj"}, .layers_to_transform = {11}, .layers_pattern = {"layers"}}, q));
  CHECK(!chosen({.targets = {"q_proj"}, .layers_to_transform = {11}, .layers_pattern = {"h"}}, q));
  CHECK(!chosen({.targets = {"q_proj"}, .modules_to_save = {"self_attn"}}, q));
  const LoraOptions patterns = {.rank = 8,
                                .alpha = 16,
                                .rank_pattern = {{"q_proj", 4}, {R"(.*\.k_proj)", 2}},
                                .alpha_pattern = {{"self_attn.q_proj", 1}}};
  CHECK(adapters::rank_of(patterns, q) == 4);
  CHECK(adapters::rank_of(patterns, "model.layers.0.self_attn.k_proj") == 2);
  CHECK(adapters::rank_of(patterns, "model.layers.0.self_attn.v_proj") == 8);
  CHECK(adapters::scaling_of(patterns, q) == 0.25);
  CHECK(adapters::scaling_of({.rank = 16, .alpha = 8, .use_rslora = true}, q) == 2);
}
