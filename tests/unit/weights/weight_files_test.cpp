// Folders of weights: their indices, and how a save replaces another.
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "formats/file/file_error.hpp"
#include "formats/file/raw_file.hpp"
#include "formats/safetensors/writer.hpp"
#include "support/catch.hpp"
#include "weights/weight_folder.hpp"
#include "weights/weight_shards.hpp"
#include "weights/weight_source.hpp"

using namespace hortator;
namespace fs = std::filesystem;

namespace {

fs::path fresh_folder(const std::string& name) {
  fs::remove_all(name);
  fs::create_directories(name);
  return fs::absolute(name);
}

void write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

using Numbers = std::map<std::string, float>;

/// Writes a file of scalars.
void write_numbers(const fs::path& path, const Numbers& numbers,
                   const std::map<std::string, std::string>& metadata = {{"format", "pt"}}) {
  std::map<std::string, formats::TensorSpec> specs;
  for (const auto& [name, number] : numbers) specs.emplace(name, formats::TensorSpec{.shape = {1}});
  formats::write_safetensors(mpi::Communicator::world(),
                             {{.path = path, .plan = formats::plan_safetensors(specs, metadata)}},
                             [&](const std::string& name) { return at::full({1}, numbers.at(name)); });
}

Numbers numbers_of(const fs::path& path) {
  const auto source = weights::open_weights(path);
  Numbers numbers;
  for (const auto& name : source->names()) source->read(name, {0, 1}, reinterpret_cast<std::byte*>(&numbers[name]));
  source->require_unchanged();
  return numbers;
}

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

}  // namespace

TEST_CASE("file names of a sharded model") {
  const weights::WeightFileNames names;
  CHECK(names.single() == "model.safetensors");
  CHECK(names.shard(0, 3) == "model-00001-of-00003.safetensors");
  CHECK(names.shard(99'999, 123'456) == "model-100000-of-123456.safetensors");
  CHECK(names.index() == "model.safetensors.index.json");
  for (const auto* own : {"model.safetensors", "model-00001-of-00003.safetensors", "model.safetensors.index.json"})
    CHECK(names.has(own));
  for (const auto* other :
       {"model-0001-of-00003.safetensors", "model-00001-of-00003.bin", "model2.safetensors",
        "model-0000a-of-00003.safetensors", "model", "my-model.safetensors", "model.safetensors.new"})
    CHECK_FALSE(names.has(other));
}

TEST_CASE("the index is byte for byte that of Hugging Face's library") {
  const std::vector<weights::WeightToSave> weights = {{.name = "b", .bytes = 8}, {.name = "\u00e9\"", .bytes = 8}};
  const auto shards = weights::shard_weights(weights, 8);
  CHECK(weights::index_json(shards, weights) == R"({
  "metadata": {
    "total_size": 16
  },
  "weight_map": {
    "b": "model-00001-of-00002.safetensors",
    "\u00e9\"": "model-00002-of-00002.safetensors"
  }
}
)");
  CHECK(
      weights::parse_weight_index(weights::index_json(shards, weights)) ==
      weights::WeightMap{{"b", "model-00001-of-00002.safetensors"}, {"\u00e9\"", "model-00002-of-00002.safetensors"}});
}

TEST_CASE("an index is read with and without its outer object") {
  const weights::WeightMap expected = {{"a", "1.safetensors"}, {"b", "2.safetensors"}};
  CHECK(weights::parse_weight_index(
            R"({"metadata": {"x": [1]}, "weight_map": {"a": "1.safetensors", "b": "2.safetensors"}})") == expected);
  CHECK(weights::parse_weight_index(R"({"a": "1.safetensors", "b": "2.safetensors"})") == expected);
}

TEST_CASE("file names in an index must not leave its folder") {
  for (const auto* file : {"../x.safetensors", "/etc/passwd", "a/b.safetensors", "..", ".", "", "a\\\\b"}) {
    INFO(file);
    CHECK_THROWS_WITH(weights::parse_weight_index(R"({"weight_map": {"w": ")" + std::string(file) + "\"}}"),
                      ContainsSubstring("'w'") && ContainsSubstring("in its own folder"));
  }
  CHECK_THROWS_AS(weights::parse_weight_index(R"({"w": "a\u0000b"})"), formats::FileError);
  const auto folder = fresh_folder("index_outside");
  write_numbers(folder / "secret.safetensors", {{"w", 1}});
  fs::create_directories(folder / "model");
  write(folder / "model" / "model.safetensors.index.json", R"({"weight_map": {"w": "../secret.safetensors"}})");
  CHECK_THROWS_WITH(weights::open_weights(folder / "model"),
                    ContainsSubstring("model.safetensors.index.json") && ContainsSubstring("../secret.safetensors"));
}

TEST_CASE("an invalid index is refused with the reason") {
  for (const auto* text : {"", "[]", "1", "{", "{\"weight_map\": []}", "{\"weight_map\": {\"a\": 1}}", "{\"a\": {}}",
                           "{\"weight_map\": {\"a\": \"x\", \"a\": \"y\"}}", "{} {}"})
    CHECK_THROWS_AS(weights::parse_weight_index(text), formats::FileError);
  CHECK_THROWS_WITH(weights::parse_weight_index(std::string(100'000, '[')),
                    ContainsSubstring("not a valid weight index"));
  CHECK_THROWS_WITH(weights::parse_weight_index(R"({"weight_map": {"a": "x", "a": "y"}})"),
                    ContainsSubstring("'a' twice"));
}

TEST_CASE("the files of an index are one source, and symbolic links in the folder are followed") {
  const auto folder = fresh_folder("indexed");
  fs::create_directories(folder / "blobs");
  fs::create_directories(folder / "snapshot");
  write_numbers(folder / "blobs" / "0.safetensors", {{"a", 1}, {"both", 2}});
  write_numbers(folder / "snapshot" / "2.safetensors", {{"b", 3}, {"both", 4}, {"unnamed", 5}});
  fs::create_symlink("../blobs/0.safetensors", folder / "snapshot" / "1.safetensors");
  const auto index = folder / "snapshot" / "model.safetensors.index.json";
  write(index, R"({"weight_map": {"a": "1.safetensors", "b": "2.safetensors", "both": "2.safetensors"}})");
  const Numbers expected = {{"a", 1}, {"b", 3}, {"both", 4}, {"unnamed", 5}};
  CHECK(numbers_of(index) == expected);
  CHECK(numbers_of(folder / "snapshot") == expected);
  write(index, R"({"weight_map": {"a": "1.safetensors", "c": "2.safetensors"}})");
  CHECK_THROWS_WITH(weights::open_weights(index),
                    ContainsSubstring("2.safetensors") && ContainsSubstring("no tensor 'c'"));
  write(index, R"({"weight_map": {"a": "3.safetensors"}})");
  CHECK_THROWS_WITH(weights::open_weights(index), ContainsSubstring("3.safetensors"));
}

TEST_CASE("the file that a folder stands for") {
  const auto folder = fresh_folder("meaning");
  CHECK_THROWS_WITH(weights::open_weights(folder), ContainsSubstring("holds no weights"));
  CHECK_FALSE(weights::holds_weights(folder));
  write_numbers(folder / "adapter.safetensors", {{"x", 1}});
  CHECK(weights::holds_weights(folder));
  CHECK(numbers_of(folder) == Numbers{{"x", 1}});
  write_numbers(folder / "other.safetensors", {{"x", 2}});
  CHECK_THROWS_WITH(weights::open_weights(folder), ContainsSubstring("several models") && ContainsSubstring("other"));
  write(folder / "my.safetensors.index.json", R"({"x": "other.safetensors"})");
  CHECK(numbers_of(folder) == Numbers{{"x", 2}});
  write_numbers(folder / "model.safetensors", {{"x", 3}});
  CHECK(numbers_of(folder) == Numbers{{"x", 3}});
}

TEST_CASE("weights of other frameworks and files of other formats are refused") {
  const auto folder = fresh_folder("kinds");
  write_numbers(folder / "tf.safetensors", {{"x", 1}}, {{"format", "tf"}});
  CHECK_THROWS_WITH(weights::open_weights(folder / "tf.safetensors"), ContainsSubstring("weights of 'tf'"));
  write_numbers(folder / "none.safetensors", {{"x", 1}}, {});
  CHECK(numbers_of(folder / "none.safetensors") == Numbers{{"x", 1}});
  write(folder / "weights.txt", "x");
  CHECK_THROWS_WITH(weights::open_weights(folder / "weights.txt"), ContainsSubstring("known are .safetensors"));
  CHECK_THROWS_WITH(weights::open_weights(folder / "nothing"), ContainsSubstring("no such file or folder"));
  const auto source = weights::open_weights(folder / "none.safetensors");
  CHECK_THROWS_WITH(source->spec("y"), ContainsSubstring("no tensor 'y'"));
}

TEST_CASE("files are renamed together, and files of earlier and killed saves are removed") {
  const auto path = fresh_folder("published");
  write(path / "config.json", "{}");
  const std::vector<weights::WeightToSave> weights = {{.name = "a", .bytes = 8}, {.name = "b", .bytes = 8}};
  const auto whole = weights::shard_weights(weights, 100);
  const auto halves = weights::shard_weights(weights, 8);
  const auto save = [&](const std::string& id, const weights::WeightShards& shards) {
    weights::WeightFolder folder(path, id, {});
    folder.begin();
    for (const auto& file : shards.files) write(folder.aside(file.name), id);
    folder.publish(shards, weights);
  };
  const std::set<std::string> of_whole = {"config.json", "model.safetensors"};
  const std::set<std::string> of_halves = {"config.json", "model-00001-of-00002.safetensors",
                                           "model-00002-of-00002.safetensors", "model.safetensors.index.json"};
  save("first", halves);
  CHECK(names_in(path) == of_halves);
  save("second", whole);
  CHECK(names_in(path) == of_whole);
  write(path / ".new-killed--model-00001-of-00007.safetensors", "");
  save("third", halves);
  save("fourth", halves);
  CHECK(names_in(path) == of_halves);
  CHECK(formats::read_text(path / "model-00002-of-00002.safetensors", 100) == "fourth");
  CHECK(formats::read_text(path / "model.safetensors.index.json", 1000) == weights::index_json(halves, weights));
  const weights::WeightFolder given_up(path, "fifth", {});
  for (const auto& file : halves.files) write(given_up.aside(file.name), "fifth");
  given_up.abandon(halves);
  CHECK(names_in(path) == of_halves);
  write(path / "file", "");
  CHECK_THROWS_WITH(weights::WeightFolder(path / "file", "sixth", {}).begin(), ContainsSubstring("is not a folder"));
}
