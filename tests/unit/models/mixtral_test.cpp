// Files and configurations of Mixtral. What it computes is compared in models_test.cpp.
#include <algorithm>
#include <fstream>
#include <hortator/error.hpp>
#include <nlohmann/json.hpp>

#include "cases.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

using namespace hortator;
namespace fs = std::filesystem;

namespace {

std::vector<test::ModelCase> mixtral_cases() {
  auto cases = test::model_cases();
  std::erase_if(cases, [](const auto& one) { return !one.folder.filename().string().starts_with("mixtral"); });
  REQUIRE(!cases.empty());
  return cases;
}

std::vector<std::string> names_in(const fs::path& file) {
  auto names = SafetensorsFile(file).names();
  std::ranges::sort(names);
  return names;
}

nlohmann::json config_of(const fs::path& folder) {
  return nlohmann::json::parse(std::ifstream(folder / "config.json"));
}

void write_config(const fs::path& folder, const nlohmann::json& config) {
  fs::create_directories(folder);
  std::ofstream(folder / "config.json") << config.dump();
}

}  // namespace

TEST_CASE("Mixtral is saved with the tensors of each expert, as transformers saves it") {
  for (const auto& one : mixtral_cases()) {
    INFO(one.folder.string());
    const auto model = models::from_pretrained(one.folder);
    const test::OwnFolder folder("mixtral-saved");
    models::save_pretrained(*model, folder.path);
    CHECK(names_in(folder.path / "model.safetensors") == names_in(one.folder / "model.safetensors"));
    const SafetensorsFile found(folder.path / "model.safetensors"), expected(one.folder / "model.safetensors");
    for (const auto& name : expected.names()) {
      INFO(name);
      CHECK(at::equal(found.get(name), expected.get(name)));
    }
  }
}

TEST_CASE("Mixtral is loaded from files whose tensors hold all experts, and in other types") {
  for (const auto& one : mixtral_cases()) {
    INFO(one.folder.string());
    const auto expected = models::from_pretrained(one.folder);
    const test::OwnFolder folder("mixtral-newer");
    fs::create_directories(folder.path);
    fs::copy_file(one.folder / "config.json", folder.path / "config.json");
    std::map<std::string, at::Tensor> tensors;
    for (const auto& parameter : expected->named_parameters()) tensors.emplace(parameter.key(), parameter.value());
    models::save_tensors(tensors, folder.path / "model.safetensors");
    const auto model = models::from_pretrained(folder.path);
    for (const auto& parameter : model->named_parameters())
      CHECK(at::equal(parameter.value(), tensors.at(parameter.key())));
    for (const auto& path : {one.folder, folder.path}) {
      const auto converted = models::from_pretrained(path, {.dtype = at::kBFloat16});
      for (const auto& parameter : converted->named_parameters())
        CHECK(at::equal(parameter.value(), tensors.at(parameter.key()).to(at::kBFloat16)));
    }
  }
}

TEST_CASE("a file without one expert's tensor is an error that names it") {
  const auto one = mixtral_cases().front();
  const test::OwnFolder folder("mixtral-incomplete");
  fs::create_directories(folder.path);
  fs::copy_file(one.folder / "config.json", folder.path / "config.json");
  const SafetensorsFile whole(one.folder / "model.safetensors");
  std::map<std::string, at::Tensor> tensors;
  std::string left_out;
  for (const auto& name : whole.names()) {
    if (left_out.empty() && name.ends_with("block_sparse_moe.experts.0.w3.weight")) {
      left_out = name;
    } else {
      tensors.emplace(name, whole.get(name));
    }
  }
  REQUIRE(!left_out.empty());
  models::save_tensors(tensors, folder.path / "model.safetensors");
  CHECK_THROWS_WITH(models::from_pretrained(folder.path), ContainsSubstring("missing '" + left_out + "'"));
}

TEST_CASE("fields of Mixtral that do not fit are refused, and the coefficient of its loss is known") {
  const auto one = mixtral_cases().front();
  const test::OwnFolder folder("mixtral-config");
  auto config = config_of(one.folder);
  config["router_aux_loss_coef"] = 0.07;
  write_config(folder.path, config);
  CHECK(models::from_config(folder.path)->config().router_aux_loss_coef == 0.07);
  for (const auto& [field, value] : {std::pair<std::string, nlohmann::json>("num_experts_per_tok", 1000),
                                     {"num_local_experts", 0},
                                     {"router_jitter_noise", 0.1},
                                     {"router_aux_loss_coef", "much"}}) {
    auto wrong = config;
    wrong[field] = value;
    write_config(folder.path, wrong);
    CHECK_THROWS_WITH(models::from_config(folder.path), ContainsSubstring(field));
  }
}

TEST_CASE("new experts begin as transformers' do") {
  const test::OwnFolder folder("mixtral-new");
  auto config = config_of(mixtral_cases().front().folder);
  config["initializer_range"] = 0.3;
  config["hidden_size"] = 64;
  config["num_attention_heads"] = 4;
  config["num_key_value_heads"] = 4;
  config.erase("head_dim");
  write_config(folder.path, config);
  const auto model = models::from_config(folder.path);
  for (const auto& parameter : model->named_parameters()) {
    if (parameter.key().find(".mlp.") == std::string::npos) continue;
    INFO(parameter.key());
    if (parameter.value().numel() > 1000) CHECK(std::abs(parameter.value().std().item<double>() - 0.3) < 0.05);
  }
}
