// Packed weights in files and on disk: saved and loaded, read from bitsandbytes' layout, packed while a checkpoint is
// loaded.
#include <ATen/ATen.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <hortator/accelerator.hpp>
#include <hortator/bigmodel/deferred_construction.hpp>
#include <hortator/bigmodel/dispatch.hpp>
#include <hortator/bigmodel/safetensors_file.hpp>
#include <hortator/models/pretrained.hpp>
#include <hortator/quantise.hpp>
#include <limits>
#include <memory>

#include "interception/weight_operators.hpp"
#include "packed/packed_layers.hpp"
#include "packed/packed_products.hpp"
#include "packed/stored_layers.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

using namespace hortator;
using Catch::Matchers::Contains;

namespace {

namespace fs = std::filesystem;

std::shared_ptr<models::PretrainedModel> small_llama(const fs::path& folder, bool is_tied) {
  fs::create_directories(folder);
  std::ofstream(folder / "config.json")
      << R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 96, "hidden_size": 64,
        "intermediate_size": 128, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
        "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "tie_word_embeddings": )"
      << (is_tied ? "true" : "false") << "}";
  at::manual_seed(7);
  auto net = models::from_config(folder);
  net->eval();
  return net;
}

std::shared_ptr<models::PretrainedModel> small_gpt2(const fs::path& folder) {
  fs::create_directories(folder);
  std::ofstream(folder / "config.json")
      << R"({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": 90, "n_embd": 64, "n_layer": 2,
        "n_head": 4, "n_positions": 32})";
  at::manual_seed(8);
  auto net = models::from_config(folder);
  net->eval();
  return net;
}

template <typename M>
at::Tensor logits_of(M& model) {
  const at::NoGradGuard no_grad;
  return model.forward({.input_ids = at::arange(12).view({2, 6}) * 7}).logits;
}

constexpr WeightFormat packed_formats[] = {WeightFormat::int8, WeightFormat::int4, WeightFormat::nf4,
                                           WeightFormat::int8_groups};

}  // namespace

TEST_CASE("a quantised model is saved and loaded with the same bytes, also by a model that has values") {
  const test::OwnFolder folder("packed-saved");
  for (const auto format : packed_formats) {
    for (const int kind : {0, 1, 2}) {
      INFO(static_cast<int>(format) << ", model " << kind);
      const auto saved = folder.path / std::to_string(static_cast<int>(format) * 3 + kind);
      fs::create_directories(saved);
      auto net = kind == 2 ? small_gpt2(saved) : small_llama(saved, kind == 1);
      std::optional<WeightFormat> scoring;
      if (kind == 1) scoring = WeightFormat::int8;
      quantise(net, {.format = format, .group = 32, .scoring = scoring});
      const auto expected = logits_of(*net);
      models::save_pretrained(*net, saved, {.max_shard_size = "20KB"});
      const auto again = models::from_pretrained(saved);
      CHECK(at::equal(logits_of(*again), expected));
      const auto own = net->named_parameters();
      for (const auto& item : again->named_parameters()) {
        INFO(item.key());
        CHECK(at::equal(item.value(), own[item.key()]));
        CHECK(interception::is_packed(item.value()) == interception::is_packed(own[item.key()]));
      }
      const auto late = construct_deferred([&] { return models::from_pretrained(saved); });
      CHECK(at::equal(logits_of(*late), expected));
      auto with_values = kind == 2 ? small_gpt2(folder.path) : small_llama(folder.path, kind == 1);
      load_checkpoint_in_model(with_values, saved);
      CHECK(at::equal(logits_of(*with_values), expected));
      models::save_pretrained(*again, saved);  // in one file
      CHECK(at::equal(logits_of(*models::from_pretrained(saved)), expected));
    }
  }
}

TEST_CASE("the scoring layer and its embedding are packed as one weight") {
  const test::OwnFolder folder("packed-scoring");
  auto net = small_llama(folder.path, true);
  const auto before = logits_of(*net);
  const auto report = quantise(net, {.format = WeightFormat::int8, .scoring = WeightFormat::int8});
  CHECK(std::ranges::count(report.layers, "model.embed_tokens") == 1);
  CHECK(net->named_parameters()["model.embed_tokens.weight"].scalar_type() == at::kByte);
  CHECK(at::allclose(logits_of(*net), before, 0.05, 0.02));
  auto other = small_llama(folder.path, false);
  CHECK(std::ranges::count(quantise(other, {.scoring = WeightFormat::nf4}).layers, "lm_head") == 1);
  auto without = small_llama(folder.path, false);
  CHECK(std::ranges::count(quantise(without).layers, "lm_head") == 0);
  auto skipped = small_llama(folder.path, true);
  CHECK(std::ranges::count(quantise(skipped, {.skip = {"lm_head"}, .scoring = WeightFormat::int8}).layers,
                           "model.embed_tokens") == 0);
}

TEST_CASE("weights are packed while they are loaded, in memory and on disk, as those of a loaded model") {
  const test::OwnFolder folder("packed-dispatch");
  Accelerator accelerator({.cpu = true});
  const State& state = accelerator;
  for (const bool is_tied : {false, true}) {
    const auto saved = folder.path / (is_tied ? "tied" : "untied");
    fs::create_directories(saved);
    const auto net = small_llama(saved, is_tied);
    models::save_pretrained(*net, saved);
    for (const auto format : packed_formats) {
      const QuantiseOptions options{.format = format, .group = 32, .scoring = WeightFormat::int8};
      auto resident = models::from_pretrained(saved);
      quantise(resident, options);
      const auto expected = logits_of(*resident);
      const auto empty = [&] {
        auto model = init_empty_weights([&] { return models::from_config(saved); });
        model->eval();
        return model;
      };
      const auto logits = [&](auto& model) {
        const auto together = model.together();
        return logits_of(*model.unwrap());
      };
      {
        auto model = load_checkpoint_and_dispatch(state, empty(), saved, {.quantise = options});
        CHECK(model.counters().on_disk == 0);
        CHECK(at::equal(logits(model), expected));
      }
      const DeviceMap on_disk = {{"", DevicePlacement::disk()}};
      CHECK_THROWS_WITH(
          load_checkpoint_and_dispatch(state, empty(), saved, {.device_map = on_disk, .quantise = options}),
          Contains(".offload_folder is not set"));
      {
        auto model = load_checkpoint_and_dispatch(
            state, empty(), saved,
            {.device_map = on_disk, .offload_folder = folder.path / "offload", .quantise = options});
        CHECK(at::allclose(logits(model), expected, 1e-4, 1e-5));
        CHECK(model.counters().in_memory < 3000);
        CHECK(model.counters().pages_read > 0);
        model.remove();
        CHECK(at::allclose(logits(model), expected, 1e-4, 1e-5));
      }
      CHECK(fs::is_empty(folder.path / "offload"));
      const auto packed_folder = folder.path / "packed";
      models::save_pretrained(*resident, packed_folder);
      auto model = load_checkpoint_and_dispatch(state, empty(), packed_folder, {.device_map = on_disk});
      CHECK(at::allclose(logits(model), expected, 1e-4, 1e-5));
      CHECK_THROWS_WITH(load_checkpoint_and_dispatch(state, empty(), packed_folder, {.quantise = options}),
                        Contains("packed already"));
    }
  }
}

TEST_CASE("files with packed weights of another model, or with wrong descriptions, are errors") {
  const test::OwnFolder folder("packed-faults");
  auto net = small_llama(folder.path, false);
  quantise(net, {.format = WeightFormat::nf4});
  models::save_pretrained(*net, folder.path);
  const auto file = folder.path / "model.safetensors";
  const auto tensors = [&] {
    std::map<std::string, at::Tensor> all;
    const SafetensorsFile stored(file);
    for (const auto& name : stored.names()) all.emplace(name, stored.get(name).clone());
    return all;
  }();
  const std::string weight = "model.layers.0.mlp.up_proj.weight";
  const auto with = [&](const std::string& name, const std::optional<at::Tensor>& value) {
    auto other = tensors;
    other.erase(name);
    if (value) other.emplace(name, *value);
    fs::remove(file);
    models::save_tensors(other, file);
    return [&] { models::from_pretrained(folder.path); };
  };
  const auto text = [](const std::string& json) {
    return at::tensor(std::vector<std::uint8_t>(json.begin(), json.end()), at::kByte);
  };
  const auto state = weight + ".quant_state.bitsandbytes__nf4";
  CHECK_THROWS_WITH(with(weight + ".absmax", std::nullopt)(), Contains("has no") && Contains("absmax"));
  CHECK_THROWS_WITH(with(weight + ".absmax", at::zeros({3}))(), Contains("absmax") && Contains("expected"));
  CHECK_THROWS_WITH(with(weight, at::zeros({8, 1}, at::kByte))(), Contains("expected 4096 bytes"));
  CHECK_THROWS_WITH(with(state, text("nonsense"))(), Contains("not a JSON object"));
  CHECK_THROWS_WITH(with(state, text(R"({"shape": [128, -64], "blocksize": 64, "dtype": "float32"})"))(),
                    Contains("has the shape [128,-64]"));
  CHECK_THROWS_WITH(with(state, text(R"({"shape": [128, 64], "blocksize": 0, "dtype": "float32"})"))(),
                    Contains("no valid blocksize"));
  const auto described = [&](const char* more) {
    return text(std::string(R"({"shape": [128, 64], "blocksize": 64, "dtype": "float32", )") + more + "}");
  };
  CHECK_THROWS_WITH(with(state, described(R"("nested_blocksize": "256")"))(), Contains("no valid nested_blocksize"));
  CHECK_THROWS_WITH(with(state, described(R"("nested_blocksize": 1099511627776)"))(),
                    Contains("no valid nested_blocksize"));
  {
    auto nested = tensors;
    const auto scales = weight + ".absmax";
    nested[scales] = at::zeros({128}, at::kByte);
    nested[weight + ".nested_absmax"] = at::ones({1});
    nested[weight + ".nested_quant_map"] = at::zeros({256});
    const auto with_offset = [&](const char* offset) {
      nested[state] = described((std::string(R"("nested_blocksize": 268435456, )") + offset).c_str());
      fs::remove(file);
      models::save_tensors(nested, file);
      models::from_pretrained(folder.path);
    };
    with_offset(R"("nested_offset": 0.5)");  // in the memory of its scales
    CHECK_THROWS_WITH(with_offset(R"("nested_offset": "0.5")"), Contains("no valid nested_offset"));
  }
  CHECK_THROWS_WITH(with(weight + ".quant_map", at::linspace(-1, 1, 16))(), Contains("other values"));
  CHECK_THROWS_WITH(with(state, text(R"({"shape": [64, 128], "blocksize": 64, "dtype": "float32"})"))(),
                    Contains("packed as [64, 128]"));
  auto fp4 = tensors;
  fp4.erase(state);
  fp4.emplace(weight + ".quant_state.bitsandbytes__fp4", text("{}"));
  fs::remove(file);
  models::save_tensors(fp4, file);
  CHECK_THROWS_WITH(models::from_pretrained(folder.path), Contains("bitsandbytes__fp4"));
}

TEST_CASE("config.json names bitsandbytes only for models that it can read") {
  const test::OwnFolder folder("packed-config");
  using Formats = std::pair<WeightFormat, std::optional<WeightFormat>>;
  const std::map<Formats, std::string> expected = {{{WeightFormat::nf4, std::nullopt}, "bitsandbytes"},
                                                   {{WeightFormat::int8, std::nullopt}, "bitsandbytes"},
                                                   {{WeightFormat::int4, std::nullopt}, "hortator"},
                                                   {{WeightFormat::nf4, WeightFormat::int8}, "hortator"},
                                                   {{WeightFormat::int4, WeightFormat::int8}, "hortator"},
                                                   {{WeightFormat::int8, WeightFormat::int8}, "bitsandbytes"}};
  for (const auto& [formats, method] : expected) {
    for (const bool is_tied : {false, true}) {
      INFO(static_cast<int>(formats.first) << ", scores " << formats.second.has_value() << ", tied " << is_tied);
      auto net = small_llama(folder.path, is_tied);
      quantise(net, {.format = formats.first, .scoring = formats.second});
      const auto config = packed::quantization_config(*net);
      const bool has_packed_embedding = is_tied && formats.second;
      CHECK_THAT(config, Contains(has_packed_embedding ? "\"hortator\"" : "\"" + method + "\""));
    }
  }
}

TEST_CASE("models that bitsandbytes has packed are read, and saved again in its layout") {
  const auto* written = std::getenv("HORTATOR_PACKED_MODELS");  // of packed_in_python.sh
  if (written == nullptr) return;
  for (const auto* kind : {"nf4", "double", "int8"}) {
    INFO(kind);
    const auto folder = fs::path(written) / kind;
    const auto packed = models::from_pretrained(folder / "packed"), plain = models::from_pretrained(folder / "plain");
    CHECK(interception::is_packed(packed->named_parameters()["model.layers.0.mlp.up_proj.weight"]));
    CHECK(at::allclose(logits_of(*packed), logits_of(*plain), 1e-4, 1e-4));
    models::save_pretrained(*packed, folder / "ours");
  }
}

TEST_CASE("bitsandbytes' settings become options, and what cannot be had is an error that names it") {
  const auto options = quantise_options({.load_in_4bit = true,
                                         .bnb_4bit_compute_dtype = "bf16",
                                         .skip_modules = {"lm_head"},
                                         .keep_in_fp32_modules = {"up_proj"}});
  CHECK(options.format == WeightFormat::nf4);
  CHECK(options.compute_dtype == at::kBFloat16);
  CHECK(options.skip == std::vector<std::string>{"lm_head", "up_proj"});
  CHECK(quantise_options({.load_in_8bit = true}).format == WeightFormat::int8);
  CHECK_THROWS_WITH(quantise_options({}), Contains("neither load_in_8bit nor load_in_4bit"));
  CHECK_THROWS_WITH(quantise_options({.load_in_8bit = true, .load_in_4bit = true}), Contains("both set"));
  CHECK_THROWS_WITH(quantise_options({.load_in_4bit = true, .bnb_4bit_quant_type = "fp4"}),
                    Contains("bnb_4bit_quant_type") && Contains("'fp4'"));
  CHECK_THROWS_WITH(quantise_options({.load_in_4bit = true, .bnb_4bit_use_double_quant = true}),
                    Contains("bnb_4bit_use_double_quant"));
  CHECK_THROWS_WITH(quantise_options({.load_in_4bit = true, .bnb_4bit_compute_dtype = "int8"}),
                    Contains("bnb_4bit_compute_dtype"));
  CHECK_THROWS_WITH(quantise_options({.load_in_8bit = true, .llm_int8_threshold = -1}), Contains("llm_int8_threshold"));
  const test::OwnFolder folder("packed-bnb");
  auto net = small_llama(folder.path, false), rounded = small_llama(folder.path, false);
  const auto expected = logits_of(*net);
  quantise(net, options);
  quantise(rounded, {.format = WeightFormat::nf4, .skip = {"lm_head", "up_proj"}});
  CHECK(logits_of(*net).scalar_type() == at::kFloat);
  CHECK(at::allclose(logits_of(*net), logits_of(*rounded), 0.05, 0.01));
  CHECK(!at::equal(logits_of(*net), logits_of(*rounded)));
}

TEST_CASE("values that are not finite are refused in weights, and stay what they are in activations") {
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  for (const auto format : packed_formats) {
    torch::nn::Linear layer(64, 4);
    {
      const at::NoGradGuard no_grad;
      layer->weight[1][3] = std::numeric_limits<float>::infinity();
    }
    struct Net : torch::nn::Module {
      torch::nn::Linear only{nullptr};
    };
    const auto net = std::make_shared<Net>();
    net->only = net->register_module("only", layer);
    CHECK_THROWS_WITH(hortator::detail::quantise(*net, {.format = format}),
                      Contains("'only.weight'") && Contains("not finite"));
    CHECK(net->only->weight.scalar_type() == at::kFloat);
    const at::NoGradGuard no_grad;
    layer->weight.normal_();
    hortator::detail::quantise(*net, {.format = format});
    auto x = at::ones({1, 64});
    x[0][5] = nan;
    CHECK(layer(x).isnan().all().item<bool>());
    CHECK(layer(at::zeros({2, 64})).equal(layer->bias.expand({2, 4})));
    CHECK(layer(at::full({1, 64}, 1e-42)).isfinite().all().item<bool>());
  }
}
