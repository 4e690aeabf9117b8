#include <ATen/ops/zeros.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "checkpoint/write/save.hpp"
#include "support/catch.hpp"
#include "tools/estimate/hub_cache.hpp"
#include "tools/estimate/stored_model.hpp"
#include "tools/verbs.hpp"

using namespace hortator;
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

fs::path scratch(const std::string& name) {
  const auto folder = fs::absolute("cli_estimate") / name;
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

/// A file of safetensors whose tensors are float32 squares of that side.
void write_safetensors(const fs::path& path, const std::vector<std::pair<std::string, int>>& squares) {
  json header;
  std::uint64_t end = 0;
  for (const auto& [name, side] : squares) {
    const auto begin = end;
    end += static_cast<std::uint64_t>(side) * static_cast<std::uint64_t>(side) * 4;
    header[name] = {{"dtype", "F32"}, {"shape", {side, side}}, {"data_offsets", {begin, end}}};
  }
  const auto text = header.dump();
  const std::uint64_t length = text.size();
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&length), sizeof length);
  file << text << std::string(end, '\0');
}

std::string output_of(const tools::Arguments& arguments) {
  std::ostringstream text;
  auto* before = std::cout.rdbuf(text.rdbuf());
  int code = -1;
  try {
    code = tools::estimate_memory_verb(arguments);
  } catch (...) {
    std::cout.rdbuf(before);
    throw;
  }
  std::cout.rdbuf(before);
  CHECK(code == 0);
  return text.str();
}

json estimate_of(const fs::path& path) { return json::parse(output_of({path.string(), "--json"})); }

}  // namespace

TEST_CASE("a model is estimated from its file, folder or index") {
  const auto folder = scratch("safetensors");
  write_safetensors(folder / "model-00001-of-00002.safetensors", {{"a.weight", 10}, {"b.weight", 20}});
  write_safetensors(folder / "model-00002-of-00002.safetensors", {{"c.weight", 30}});
  CHECK(estimate_of(folder / "model-00001-of-00002.safetensors").at("float32") == 4 * 500);
  CHECK_THROWS_WITH(estimate_of(folder), ContainsSubstring("holds several models"));
  std::ofstream(folder / "model.safetensors.index.json")
      << R"({"weight_map": {"a.weight": "model-00001-of-00002.safetensors", "c.weight": "model-00002-of-00002.safetensors"}})";
  CHECK(estimate_of(folder).at("float32") == 4 * 1400);
  const auto estimate = estimate_of(folder / "model.safetensors.index.json");
  CHECK(estimate.at("parameters") == 1400);
  CHECK(estimate.at("largest_layers") == json({"c"}));
  fs::remove(folder / "model-00002-of-00002.safetensors");
  CHECK_THROWS_WITH(estimate_of(folder), ContainsSubstring("model-00002-of-00002.safetensors"));
  std::ofstream(folder / "model.safetensors.index.json") << "{}{";
  CHECK_THROWS_WITH(estimate_of(folder), ContainsSubstring("model.safetensors.index.json"));
}

// An embedding of 4 x 2 that is the head's weight, too, and a normalization of 2.
TEST_CASE("tied weights count once") {
  CHECK(estimate_of(fs::path(TORCH_PICKLES) / "tied.pt").at("parameters") == 4 * 2 + 4 * 2 + 1);
}

TEST_CASE("only the models of a checkpoint count") {
  const auto folder = scratch("checkpoint");
  checkpoint::Snapshot state;
  state.common.put("models/0/layers.0.weight", at::zeros({10, 10}));
  state.common.put("models/0/layers.1.weight", at::zeros({20, 10}));
  state.common.put("optimizers/0/moments", at::zeros({1000}));
  checkpoint::save(mpi::Communicator::world(), folder / "one", state, {.step = 3});
  const auto stored = tools::estimates::stored_model(folder / "one");
  REQUIRE(stored.size() == 2);
  CHECK(stored[0].first == "layers.0.weight");
  CHECK(estimate_of(folder / "one").at("float32") == 4 * 300);
  CHECK(estimate_of(folder / "one" / "state.h5").at("largest_layers") == json({"layers.1"}));

  state.common.put("models/1/weight", at::zeros({7}));
  checkpoint::save(mpi::Communicator::world(), folder / "two", state, {.step = 3});
  CHECK(tools::estimates::stored_model(folder / "two").back().first == "1.weight");
}

TEST_CASE("estimate-memory prints a table and reports errors") {
  const auto folder = scratch("table");
  write_safetensors(folder / "model.safetensors", {{"a.weight", 64}});
  const auto path = (folder / "model.safetensors").string();
  const auto text =
      output_of({path, "--dtype", "int8", "-n", "4", "--training-dtype", "bfloat16", "--batch-size", "2"});
  for (const auto* part :
       {"4096 numbers in 16.0 KiB", "int8", "training in bfloat16 on 4 ranks", "activations", "ZeRO 3"})
    CHECK_THAT(text, ContainsSubstring(part));
  CHECK(text.find("float32") == std::string::npos);
  CHECK_THAT(output_of({"--help"}), ContainsSubstring("usage: hortator estimate-memory"));
  CHECK_THROWS_WITH(output_of({}), ContainsSubstring("The model is missing"));
  CHECK_THROWS_WITH(output_of({"nowhere"}), ContainsSubstring("No model in 'nowhere'"));
  CHECK_THROWS_WITH(output_of({folder.parent_path().string()}), ContainsSubstring("No model in"));
  CHECK_THROWS_WITH(output_of({path, "--dtype", "int5"}), ContainsSubstring("did you mean 'int"));
  CHECK_THROWS_WITH(output_of({path, "--rank", "4"}), ContainsSubstring("--rank"));
}

TEST_CASE("a model of Hugging Face is estimated from its config.json alone, as from its weights") {
  for (const auto* model : {"bert-0", "gpt2-0", "llama-0", "resnet-0"}) {
    INFO(model);
    const auto stored = fs::path(MODEL_CASES) / model;
    const auto folder = scratch(model);
    fs::copy_file(stored / "config.json", folder / "config.json");
    const auto whole = estimate_of(stored / "model.safetensors");
    CHECK(estimate_of(folder).at("parameters") == whole.at("parameters"));
    CHECK(estimate_of(folder / "config.json").at("float32") == whole.at("float32"));
  }
}

TEST_CASE("names of models are found among the downloads of huggingface_hub") {
  const auto hub = scratch("hub");
  const auto folder = hub / "models--org--name";
  fs::create_directories(folder / "snapshots" / "abc");
  fs::create_directories(folder / "snapshots" / "def");
  fs::create_directories(folder / "refs");
  std::ofstream(folder / "refs" / "main") << "abc";
  fs::create_directories(hub / "models--gpt2" / "snapshots" / "only");
  using tools::estimates::hub_snapshot;
  CHECK(hub_snapshot("org/name", hub) == folder / "snapshots" / "abc");
  CHECK(hub_snapshot("org/name@def", hub) == folder / "snapshots" / "def");
  CHECK(hub_snapshot("gpt2", hub) == hub / "models--gpt2" / "snapshots" / "only");
  for (const auto* none : {"org/other", "org/name@x", "a/b/c", "../name", "/org/name", "org/name@../def", ""})
    CHECK(!hub_snapshot(none, hub));
  std::ofstream(folder / "refs" / "main") << "../../secret";
  CHECK(!hub_snapshot("org/name", hub));

  const auto folder_of = [](std::map<std::string, std::string> variables) {
    return tools::estimates::hub_folder([=](const char* name) {
      const auto found = variables.find(name);
      return found == variables.end() ? std::nullopt : std::optional(found->second);
    });
  };
  CHECK(folder_of({{"HF_HUB_CACHE", "/c"}, {"HF_HOME", "/h"}}) == "/c");
  CHECK(folder_of({{"HF_HOME", "/h"}, {"XDG_CACHE_HOME", "/x"}}) == "/h/hub");
  CHECK(folder_of({{"XDG_CACHE_HOME", "/x"}, {"HOME", "/me"}}) == "/x/huggingface/hub");
  CHECK(folder_of({{"HOME", "/me"}}) == "/me/.cache/huggingface/hub");
}

TEST_CASE("a downloaded model is estimated by its name") {
  const auto hub = scratch("downloads");
  fs::create_directories(hub / "models--org--tiny" / "snapshots" / "abc");
  write_safetensors(hub / "models--org--tiny" / "snapshots" / "abc" / "model.safetensors", {{"a.weight", 10}});
  setenv("HF_HUB_CACHE", hub.c_str(), 1);
  CHECK(estimate_of("org/tiny").at("parameters") == 100);
  CHECK_THROWS_WITH(output_of({"org/tiny", "--training-dtype", "fp8"}),
                    ContainsSubstring("only products are in 8 bits"));
  CHECK_THAT(output_of({"org/tiny", "--dtype", "fp8"}), ContainsSubstring("100 B               -"));
  CHECK_THROWS_WITH(estimate_of("org/absent"),
                    ContainsSubstring("No model in 'org/absent'") && ContainsSubstring("has downloaded"));
  unsetenv("HF_HUB_CACHE");
}
