#include "formats/torch/pickle/file.hpp"

#include <ATen/ATen.h>

#include <filesystem>
#include <fstream>
#include <hortator/error.hpp>
#include <nlohmann/json.hpp>

#include "formats/file/file_error.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

using namespace hortator;
using formats::PickleFile;
namespace fs = std::filesystem;
using Names = std::vector<std::string>;

// tests/tools/torch-pickles.py writes the files.

namespace {

fs::path stored(const std::string& name) { return fs::path(TORCH_PICKLES) / name; }

std::string hex(const at::Tensor& tensor) {
  constexpr auto digits = "0123456789abcdef";
  const auto flat = tensor.contiguous();
  const auto* bytes = static_cast<const unsigned char*>(flat.const_data_ptr());
  std::string text;
  for (std::size_t i = 0; i < flat.nbytes(); ++i) {
    text += digits[bytes[i] >> 4];
    text += digits[bytes[i] & 15];
  }
  return text;
}

nlohmann::json expected_of_torch() {
  std::ifstream in(stored("expected.json"));
  return nlohmann::json::parse(in);
}

}  // namespace

TEST_CASE("tensors of torch.save are read bit for bit: whole, by rows and as views") {
  std::size_t seen = 0;
  const auto files = expected_of_torch();
  for (const auto& [name, tensors] : files.items()) {
    INFO(name);
    const PickleFile file(stored(name + ".pt"));
    CHECK(file.names().size() == tensors.size());
    for (const auto& [part, facts] : tensors.items()) {
      INFO(part);
      const auto shape = facts["shape"].get<std::vector<std::int64_t>>();
      const auto tensor = file.get(part);
      CHECK(std::string(formats::type_name(tensor.scalar_type())) ==
            (facts["dtype"] == "float8_e8m0fnu" ? std::string() : facts["dtype"].get<std::string>()));
      CHECK(tensor.sizes() == at::IntArrayRef(shape));
      CHECK(file.spec(part).shape == shape);
      CHECK(hex(tensor) == facts["hex"].get<std::string>());
      CHECK(hex(file.view(part)) == facts["hex"].get<std::string>());
      if (!shape.empty() && shape.front() > 1) {
        const auto all = facts["hex"].get<std::string>();
        const auto row = all.size() / static_cast<std::size_t>(shape.front());
        CHECK(hex(file.get_rows(part, 1, shape.front() - 1)) == all.substr(row));
      }
      ++seen;
    }
  }
  CHECK(seen == 44);
}

TEST_CASE("names are in the file's order, and nested names are joined by points") {
  CHECK(PickleFile(stored("shapes.pt")).names() == Names{"scalar", "empty", "no_rows", "no_columns", "matrix",
                                                         "transposed", "columns", "last_row", "every_other", "expanded",
                                                         "channels_last"});
  const PickleFile nested(stored("nested.pt"));
  CHECK(nested.names() == Names{"state_dict.weight", "moments.0", "moments.1.7"});
  CHECK(nested.contains("moments.1.7"));
  CHECK_FALSE(nested.contains("moments"));
  CHECK(PickleFile(stored("tensor.pt")).names() == Names{""});
  CHECK_THROWS_WITH(nested.get("moment.0"),
                    ContainsSubstring("no tensor 'moment.0'") && ContainsSubstring("did you mean 'moments.0'?"));
  CHECK_THROWS_AS(nested.get_rows("moments.0", 1, 1), UsageError);
  CHECK_THROWS_AS(PickleFile(stored("shapes.pt")).get_rows("scalar", 0, 1), UsageError);
}

TEST_CASE("numbers, strings and containers are read") {
  const PickleFile file(stored("nested.pt"));
  const auto& value = file.value();
  CHECK(std::get<std::int64_t>(value.find("epoch")->content) == 3);
  CHECK(std::get<double>(value.find("best")->content) == 0.25);
  CHECK(std::get<std::string>(value.find("name")->content) == "r\u00e9sum\u00e9");
  CHECK(std::get<bool>(value.find("done")->content));
  CHECK(std::holds_alternative<std::nullptr_t>(value.find("nothing")->content));
  CHECK(value.find("huge")->described() == "a whole number of more than 64 bits");
  CHECK(std::get<std::int64_t>(value.find("negative")->content) == -(std::int64_t{1} << 40));
  const auto& sizes = std::get<formats::PickleValue::Tuple>(value.find("sizes")->content).items;
  CHECK(std::get<std::int64_t>(sizes.at(1).content) == 3);
  const auto& pair = std::get<formats::PickleValue::Tuple>(value.find("pair")->content).items;
  const auto& list = std::get<formats::PickleValue::List>(pair.at(1).content);
  CHECK(std::get<std::string>(list.at(1).content) == "three");
  CHECK(value.find("absent") == nullptr);
}

TEST_CASE("ties, parameters and strides are preserved") {
  const PickleFile tied(stored("tied.pt"));
  CHECK(tied.names() == Names{"embedding.weight", "norm.weight", "norm.bias", "norm.running_mean", "norm.running_var",
                              "norm.num_batches_tracked", "head.weight"});
  CHECK(tied.tensor("embedding.weight").storage == tied.tensor("head.weight").storage);
  CHECK(tied.tensor("embedding.weight").storage != tied.tensor("norm.weight").storage);
  CHECK(tied.view("embedding.weight").data_ptr() == tied.view("head.weight").data_ptr());
  CHECK(PickleFile(stored("parameter.pt")).tensor("weight").is_parameter);
  CHECK_FALSE(tied.tensor("norm.weight").is_parameter);
  const auto last = PickleFile(stored("shapes.pt")).get("channels_last");
  CHECK(last.is_contiguous(at::MemoryFormat::ChannelsLast));
  // Only the part of the storage that the tensor spans is read.
  CHECK(PickleFile(stored("shapes.pt")).get("columns").storage().nbytes() == 10 * sizeof(float));
}

TEST_CASE("a view of a state dict is a private map of the file") {
  const PickleFile file(stored("floats.pt"));
  auto view = file.view("float32");
  CHECK(view.data_ptr() == file.view("float32").data_ptr());
  view.add_(1);
  CHECK(file.get("float32")[0][0].item<float>() == 0);
  const auto left = PickleFile(stored("floats.pt")).view("float32");  // the map lives as long as the last view
  CHECK(left[0][1].item<float>() == 1);
}

TEST_CASE("other files are refused with their format and a hint") {
  struct Case {
    const char* name;
    const char* why;
  };
  const auto refused = GENERATE(
      Case{"legacy.pt", "before version 1.6"}, Case{"pickle.pt", "only a pickle"},
      Case{"foreign.pt", "an object of argparse.Namespace"}, Case{"counter.pt", "an object of collections.Counter"},
      Case{"script.pt", "a TorchScript module"}, Case{"conjugate.pt", "a view by conjugation"},
      Case{"compressed.pt", "is compressed"}, Case{"expected.json", "does not begin as a zip archive"});
  INFO(refused.name);
  CHECK_THROWS_AS(PickleFile(stored(refused.name)), formats::FileError);
  CHECK_THROWS_WITH(PickleFile(stored(refused.name)),
                    ContainsSubstring(refused.name) && ContainsSubstring(refused.why));
}

TEST_CASE("a state dict of a later protocol of Python is read") {
  const PickleFile expected(stored("counter.pt"), formats::ForeignObjects::kept);
  CHECK(PickleFile(stored("protocol_4.pt")).get("weight").equal(expected.get("weight")));
}

TEST_CASE("foreign objects are kept on request, without construction") {
  const PickleFile file(stored("counter.pt"), formats::ForeignObjects::kept);
  CHECK(file.names() == Names{"weight"});
  const auto& count = std::get<formats::PickleValue::Foreign>(file.value().find("count")->content);
  CHECK(count.name == "collections.Counter");
  CHECK(std::get<std::int64_t>(count.arguments.at(0).find("a")->content) == 2);
  const PickleFile other(stored("foreign.pt"), formats::ForeignObjects::kept);
  CHECK(other.value().find("args")->described() == "an object of argparse.Namespace");
}

TEST_CASE("a file truncated anywhere is refused") {
  const auto whole = test::content_of(stored("nested.pt"));
  for (std::size_t bytes = 0; bytes < whole.size(); bytes += 7) {
    std::ofstream("cut.pt", std::ios::binary | std::ios::trunc) << whole.substr(0, bytes);
    INFO(bytes);
    CHECK_THROWS_AS(PickleFile("cut.pt"), formats::FileError);
  }
}

TEST_CASE("a file that changes while it is in use is an error") {
  fs::copy_file(stored("floats.pt"), "changing.pt", fs::copy_options::overwrite_existing);
  const PickleFile file("changing.pt");
  fs::resize_file("changing.pt", fs::file_size("changing.pt") - 1);
  CHECK_THROWS_WITH(file.get("float32"), ContainsSubstring("changed while it was in use"));
}
