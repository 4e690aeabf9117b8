// Adapters against peft, on stored cases that lora_oracle.py wrote.
#include <fstream>
#include <hortator/lora.hpp>
#include <map>
#include <nlohmann/json.hpp>

#include "adapters/adapter_files.hpp"
#include "cases.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

using namespace hortator;
using test::ModelCase;

namespace {

constexpr double adapter_tolerance = 1e-5;  // relative to the largest number, but absolute below 1

std::vector<ModelCase> lora_cases() {
  const auto* other = std::getenv("HORTATOR_LORA_CASES");
  std::vector<std::filesystem::path> folders;
  for (const auto& entry : std::filesystem::directory_iterator(other != nullptr ? other : LORA_CASES))
    if (entry.is_directory()) folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  std::vector<ModelCase> cases;
  for (const auto& folder : folders) cases.emplace_back(folder);
  return cases;
}

/// As near as float32 is to float64, where a random model magnifies rounding.
double tolerance_of(const ModelCase& one, const char* what, double largest) {
  return std::max(adapter_tolerance * std::max(1.0, largest), 4 * one.get(what).item<double>());
}

/// Outputs against those of the case whose names begin with `prefix`.
void check_adapted(const ModelCase& one, const models::ModelOutputs& outputs, const std::string& prefix) {
  std::size_t compared = 0;
  for (const auto& [name, value] : test::outputs_by_name(outputs)) {
    const auto expected = one.get(prefix + "." + name);
    if (!expected.defined()) continue;
    INFO(name);
    REQUIRE(value.defined());
    REQUIRE(value.sizes() == expected.sizes());
    const auto difference = ((value - expected) * one.counted(expected)).abs().max().item<double>();
    CHECK(difference <= tolerance_of(one, "error.output", expected.abs().max().item<double>()));
    ++compared;
  }
  CHECK(compared > 0);
}

at::Tensor scalar_of(const ModelCase& one, const models::ModelOutputs& outputs) {
  auto loss = at::zeros({});
  for (const auto& [name, value] : test::outputs_by_name(outputs))
    if (one.has("cotangent." + name)) loss = loss + (value * one.get("cotangent." + name)).sum();
  return loss;
}

bool can_be_disabled(const ModelCase& one) { return one.has("base.logits") || one.has("base.last_hidden_state"); }

}  // namespace

TEST_CASE("adapters of peft compute its outputs and gradients") {
  const auto cases = lora_cases();
  REQUIRE(!cases.empty());
  for (const auto& one : cases) {
    INFO(one.folder.string());
    const auto model = models::from_pretrained(one.folder);
    load_adapter(model, one.folder / "adapter", {.is_trainable = true});
    model->eval();
    const auto outputs = model->forward(one.inputs());
    check_adapted(one, outputs, "output");
    scalar_of(one, outputs).backward();
    double largest = 0;
    for (const auto& name : one.file.names())
      if (name.starts_with("gradient.")) largest = std::max(largest, one.get(name).abs().max().item<double>());
    std::size_t compared = 0;
    for (const auto& [name, tensor] : adapters::stored_tensors(*model, "default")) {
      const auto expected = one.get("gradient." + name);
      INFO(name);
      CHECK(tensor.requires_grad());
      if (!expected.defined()) continue;
      REQUIRE(tensor.grad().defined());
      CHECK((tensor.grad() - expected).abs().max().item<double>() <= tolerance_of(one, "error.gradient", largest));
      ++compared;
    }
    CHECK(compared > 0);
    for (const auto& parameter : trainable_parameters(model)) CHECK(parameter.grad().defined());
  }
}

TEST_CASE("adapters are switched off and merged, with the outputs of peft") {
  for (const auto& one : lora_cases()) {
    if (!can_be_disabled(one)) continue;
    INFO(one.folder.string());
    const at::NoGradGuard no_grad;
    const auto model = models::from_pretrained(one.folder);
    load_adapter(model, one.folder / "adapter");
    {
      const AdaptersDisabled disabled(model);
      check_adapted(one, model->forward(one.inputs()), "base");
    }
    check_adapted(one, model->forward(one.inputs()), "output");
    const auto options = adapters::read_config(one.folder / "adapter");
    if (options.lora_bias) continue;
    // a tied embedding is the weight of two layers, and only one of them has the adapter
    const auto json = nlohmann::json::parse(model->config().json);
    const bool is_tied = json.value("tie_word_embeddings", true);
    const auto layers = adapted_layers(model);
    const bool has_shared = std::ranges::any_of(layers, [](const std::string& layer) {
      return layer.find("embed") != std::string::npos || layer.ends_with("wte") || layer.ends_with("lm_head");
    });
    if (is_tied && has_shared) continue;
    merge_adapters(model);
    check_adapted(one, model->forward(one.inputs()), "output");
    unmerge_adapters(model);
    check_adapted(one, model->forward(one.inputs()), "output");
    set_adapters(model, {});
    check_adapted(one, model->forward(one.inputs()), "base");
  }
}

TEST_CASE("adapters that are written are read again, also by peft") {
  for (const auto& one : lora_cases()) {
    INFO(one.folder.string());
    const bool is_oracle = std::getenv("HORTATOR_LORA_CASES") != nullptr;
    const test::OwnFolder own("written-adapter");
    const auto folder = is_oracle ? one.folder : own.path;
    const auto model = models::from_pretrained(one.folder);
    load_adapter(model, one.folder / "adapter");
    save_adapter(model, folder / "again");
    const auto again = models::from_pretrained(one.folder);
    load_adapter(again, folder / "again");
    const at::NoGradGuard no_grad;
    check_adapted(one, again->forward(one.inputs()), "output");

    // one that began here
    auto options = adapters::read_config(one.folder / "adapter");
    const auto fresh = models::from_pretrained(one.folder);
    lora(fresh, options);
    if (can_be_disabled(one)) check_adapted(one, fresh->forward(one.inputs()), "base");
    for (const auto& parameter : trainable_parameters(fresh)) parameter.add_(at::randn_like(parameter) * 0.1);
    save_adapter(fresh, folder / "new");
    std::map<std::string, at::Tensor> outputs;
    for (const auto& [name, value] : test::outputs_by_name(fresh->forward(one.inputs())))
      if (value.defined()) outputs.emplace("new." + name, value.contiguous());
    std::filesystem::remove(folder / "new" / "outputs.safetensors");
    models::save_tensors(outputs, folder / "new" / "outputs.safetensors");
  }
}
