// from_pretrained() under deferred construction: weights are read when they are needed.
#include <filesystem>
#include <fstream>
#include <hortator/bigmodel/deferred_construction.hpp>
#include <hortator/lora.hpp>
#include <hortator/models/pretrained.hpp>

#include "paging/deferred/construction_scope.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

using namespace hortator;
namespace fs = std::filesystem;

namespace {

/// A folder with the weights of a model with random values. Some weights have more than 1 MiB.
class Checkpoint {
 public:
  explicit Checkpoint(const char* kind) : folder_(kind) {
    fs::create_directories(folder_.path / "config");
    std::ofstream(folder_.path / "config" / "config.json") << (kind == std::string("mixtral") ? mixtral : llama);
    at::manual_seed(4);
    models::save_pretrained(*models::from_config(folder_.path / "config"), path());
  }
  fs::path path() const { return folder_.path / "model"; }

 private:
  static constexpr const char* llama = R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
    "vocab_size": 1100, "hidden_size": 256, "intermediate_size": 1200, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64})";
  static constexpr const char* mixtral = R"({"architectures": ["MixtralForCausalLM"], "model_type": "mixtral",
    "vocab_size": 64, "hidden_size": 128, "intermediate_size": 300, "num_hidden_layers": 1,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64, "num_local_experts": 8,
    "num_experts_per_tok": 2})";

  test::OwnFolder folder_;
};

std::shared_ptr<models::PretrainedModel> read_later(const fs::path& path, const models::PretrainedOptions& how = {}) {
  return construct_deferred([&] { return models::from_pretrained(path, how); });
}

std::size_t count_absent(const torch::nn::Module& model) {
  std::size_t count = 0;
  for (const auto& parameter : model.parameters()) count += paging::lacks_memory(parameter) ? 1 : 0;
  return count;
}

void check_same(const torch::nn::Module& found, const torch::nn::Module& expected) {
  const auto wanted = expected.named_parameters();
  CHECK(found.named_parameters().size() == wanted.size());
  for (const auto& item : found.named_parameters()) {
    INFO(item.key());
    CHECK(at::equal(item.value(), wanted[item.key()]));
  }
}

}  // namespace

TEST_CASE("under deferred construction a checkpoint's large weights are read when they are needed") {
  for (const auto* kind : {"llama", "mixtral"}) {
    INFO(kind);
    const Checkpoint checkpoint(kind);
    const auto expected = models::from_pretrained(checkpoint.path());
    CHECK(count_absent(*expected) == 0);
    const auto found = read_later(checkpoint.path());
    CHECK(count_absent(*found) > 1);
    check_same(*found, *expected);
    CHECK(count_absent(*found) == 0);
  }
}

TEST_CASE("late weights get the type that was asked for, and are there although the files were removed") {
  const Checkpoint checkpoint("llama");
  const auto expected = models::from_pretrained(checkpoint.path(), {.dtype = at::kBFloat16});
  const auto found = read_later(checkpoint.path(), {.dtype = at::kBFloat16});
  fs::remove_all(checkpoint.path());
  for (const auto& parameter : found->parameters()) CHECK(parameter.scalar_type() == at::kBFloat16);
  check_same(*found, *expected);
}

TEST_CASE("a model with late weights computes what the same one with present weights does") {
  const Checkpoint checkpoint("llama");
  const auto expected = models::from_pretrained(checkpoint.path());
  const auto found = read_later(checkpoint.path());
  const at::NoGradGuard no_grad;
  const models::ModelInputs inputs{.input_ids = at::arange(8).view({1, 8})};
  CHECK(at::equal(found->forward(inputs).logits, expected->forward(inputs).logits));
}

TEST_CASE("weights that do not fit are errors at once, not when they are needed") {
  const Checkpoint checkpoint("llama");
  std::ifstream in(checkpoint.path() / "config.json");
  std::string config((std::istreambuf_iterator<char>(in)), {});
  const auto at = config.find("1200");
  REQUIRE(at != std::string::npos);
  std::ofstream(checkpoint.path() / "config.json") << config.replace(at, 4, "1201");
  CHECK_THROWS_WITH(read_later(checkpoint.path()), ContainsSubstring("unlike"));
}

TEST_CASE("an adapter of a weight that is read later computes at each use, the first included") {
  const Checkpoint checkpoint("llama");
  for (const bool is_random : {false, true}) {
    auto net = is_random ? construct_deferred([&] { return models::from_config(checkpoint.path()); })
                         : read_later(checkpoint.path());
    net->eval();
    lora(net, {.rank = 2, .targets = {"gate_proj"}});
    CHECK(count_absent(*net) > 0);
    const at::NoGradGuard no_grad;
    for (const auto& item : net->named_parameters())
      if (item.key().find("lora_") != std::string::npos) item.value().normal_(0, 0.2);
    const auto ids = at::arange(8).view({1, 8});
    const auto first = net->forward({.input_ids = ids}).logits;
    CHECK(at::equal(net->forward({.input_ids = ids}).logits, first));
    const AdaptersDisabled base(net);
    CHECK(!at::allclose(net->forward({.input_ids = ids}).logits, first, 1e-2, 1e-2));
  }
}
