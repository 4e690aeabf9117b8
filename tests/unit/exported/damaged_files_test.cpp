#include <fstream>
#include <functional>
#include <hortator/error.hpp>
#include <optional>
#include <stdexcept>

#include "changed_files.hpp"
#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"
#include "stored_models.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

using namespace hortator;
namespace fs = std::filesystem;
using stored_models::changed;
using stored_models::copied;
using stored_models::graph_record;
using stored_models::scratch;

namespace {

void refused(const fs::path& file, const std::vector<std::string>& parts) {
  INFO(file);
  try {
    exported_module(file);
    FAIL_CHECK("the file was not refused");
  } catch (const formats::FileError& error) {
    CHECK_THAT(error.what(), ContainsSubstring("cannot be used as an exported model"));
    for (const auto& part : parts) CHECK_THAT(error.what(), ContainsSubstring(part));
  }
}

}  // namespace

TEST_CASE("operators that LibTorch does not have are refused by name and place") {
  refused(changed("mlp", graph_record, "torch.ops.aten.gelu.default", "torch.ops.mine.gelu.default"),
          {"node 'gelu'", "torch.ops.mine.gelu.default", "module layers.1", "not known to LibTorch"});
  refused(changed("condition", graph_record, "torch.ops.higher_order.cond", "torch.ops.higher_order.scan"),
          {"torch.ops.higher_order.scan", "higher-order operator is not supported", "cond"});
  refused(changed("mlp", graph_record, "torch.ops.aten.gelu.default", "torch._functorch.predispatch._add_batch_dim"),
          {"torch._functorch.predispatch._add_batch_dim", "torch.vmap", "run_decompositions({})"});
  refused(changed("condition", graph_record, "torch.ops.aten.sin.default", "torch.ops.aten.sinn.default"),
          {"node 'sin'", "torch.ops.aten.sinn.default"});
}

TEST_CASE("arguments that an operator does not take are refused") {
  refused(changed("mlp", graph_record, R"("name": "weight")", R"("name": "weigth")"), {"node 'linear'", "weight"});
  refused(
      changed("mlp", graph_record, R"("as_tensor": {"name": "linear"})", R"("as_tensor": {"name": "p_layers_0_bias"})"),
      {"two values named 'p_layers_0_bias'"});
  refused(changed("mlp", graph_record, R"("as_tensor": {"name": "gelu"})", R"("as_string": "gelu")"), {"gelu"});
}

TEST_CASE("versions and features that are not supported are refused by name") {
  refused(changed("mlp", graph_record, R"("schema_version": {"major": 8)", R"("schema_version": {"major": 9)"),
          {"its schema has version 9.", "version 8 is supported"});
  refused(changed("mlp", graph_record, R"("verifiers": ["TRAINING"])", R"("verifiers": ["EDGE"])"),
          {"verifiers[0]", "'EDGE'"});
  refused(changed("mlp", graph_record, R"({"user_input": )", R"({"token": )"), {"input_specs", "'token'"});
  refused(changed("mlp", graph_record, R"({"user_output": )", R"({"gradient_to_parameter": )"),
          {"'gradient_to_parameter'"});
  refused(changed("mlp", graph_record, R"("user_input": {"arg": {"as_tensor")",
                  R"("user_input": {"arg": {"as_custom_obj")"),
          {"an object of a class as input"});
  refused(changed("mlp", "archive_version", "0", "7"), {"version '7'"});
  refused(changed("mlp", "archive_format", "pt2", "zip"), {"its format is 'zip'"});
  refused(changed("mlp", "byteorder", "little", "big"), {"byte order"});
}

TEST_CASE("tensors that do not lie within their records are refused by name") {
  const auto* weights = "data/weights/model_weights_config.json";
  refused(changed("mlp", weights, R"("sizes": [{"as_int": 8}, {"as_int": 6}])",
                  R"("sizes": [{"as_int": 8}, {"as_int": 7}])"),
          {"config.layers.0.weight", "does not lie within its record"});
  refused(changed("mlp", weights, R"("sizes": [{"as_int": 8}, {"as_int": 6}])",
                  R"("sizes": [{"as_int": 9223372036854775807}, {"as_int": 6}])"),
          {"does not lie within its record"});
  refused(changed("mlp", weights, R"("as_int": 8})", R"("as_int": -8})"), {"negative"});
  refused(changed("mlp", weights, R"("use_pickle": false)", R"("use_pickle": true)"),
          {"a tensor of a class of its own"});
  refused(changed("mlp", weights, R"("weight_1")", R"("weight_0")"), {"shares memory with"});
  refused(changed("mlp", weights, R"("weight_1")", R"("weight_9")"), {"'data/weights/weight_9' is missing"});
}

TEST_CASE("files that are no exported programs are refused with what they are") {
  const auto& folder = scratch().path;
  std::ofstream(folder / "text.pt2") << "not a zip archive";
  refused(folder / "text.pt2", {"its directory is missing"});
  const auto whole = test::content_of(stored_models::file("mlp"));
  std::ofstream(folder / "half.pt2", std::ios::binary) << whole.substr(0, whole.size() / 2);
  refused(folder / "half.pt2", {"half.pt2", "its directory is missing"});
  CHECK_THROWS_WITH(exported_module(folder / "none.pt2"), ContainsSubstring("none.pt2"));
}

TEST_CASE("a form in training mode is refused for evaluation if it is the only one") {
  const auto net = exported_module(copied("modes", [](const std::string& name, std::string data) {
    return name.ends_with("models/eval.json") ? std::nullopt : std::optional(std::move(data));
  }));
  CHECK_NOTHROW(net->forward(at::rand({2, 4})));
  net->eval();
  CHECK_THROWS_WITH(net->forward(at::rand({2, 4})), ContainsSubstring("no form for evaluation"));
}
