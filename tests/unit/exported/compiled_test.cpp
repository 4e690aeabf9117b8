// Packages in the working directory, which compiled_in_python.sh makes, and files that are none.
#include <ATen/ATen.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <hortator/bigmodel/weights.hpp>
#include <hortator/models/compiled.hpp>
#include <map>
#include <string>

#include "support/catch.hpp"
#include "support/files.hpp"
#include "weights/weight_source.hpp"

using namespace hortator;
using Catch::Matchers::Contains;

TEST_CASE("a compiled package computes with weights from files, in place, and refuses what does not fit",
          "[.][compiled]") {
  const auto results = weights::open_weights("results.pt");
  const auto expected = results->tensor("of_first").clone(), of_others = results->tensor("of_others").clone();
  const auto x = at::arange(12, at::kFloat).view({4, 3}) / 7;
  const auto net = load_compiled("net/net.pt2");
  CHECK(at::allclose(net->forward(x, x)[0], expected, 1e-5, 1e-6));
  CHECK(at::allclose(net->forward(x, x)[1], 2 * x));
  CHECK(at::allclose(net->forward(x.repeat({3, 1}), x.repeat({3, 1}))[0], expected.repeat({3, 1}), 1e-5, 1e-6));
  CHECK(at::allclose(net->forward(x.t().contiguous().t(), x)[0], expected, 1e-5, 1e-6));  // strides
  const auto parameters = net->named_parameters();
  CHECK(parameters.contains("up.weight"));
  CHECK(!parameters["up.weight"].requires_grad());
  CHECK(parameters.contains("norm.running_mean"));  // files do not say what was a buffer

  const auto other = load_compiled("net/net.pt2", {.weights = "other.pt", .rename = {{"other", ""}}});
  CHECK(at::allclose(other->forward(x, x)[0], of_others, 1e-5, 1e-6));
  {
    const at::NoGradGuard no_grad;
    const auto theirs = other->named_parameters();
    for (const auto& item : parameters) item.value().copy_(theirs[item.key()]);
  }
  CHECK(at::allclose(net->forward(x, x)[0], of_others, 1e-5, 1e-6));  // the code reads the parameters themselves
  CHECK(at::allclose(load_compiled("own.pt2")->forward(x, x)[0], of_others, 1e-5, 1e-6));

  CHECK_THROWS_WITH(net->forward(x), Contains("refuses its inputs"));
  CHECK_THROWS_WITH(net->forward(x, at::Tensor()), Contains("refuses its inputs"));
  CHECK_THROWS_WITH(net->forward(x.t().contiguous(), x), Contains("refuses its inputs"));
  CHECK_THROWS_WITH(net->to(at::kDouble), Contains("compiled model"));
  CHECK_THROWS_WITH(load_compiled("net/net.pt2", {.weights = "other.pt"}),
                    Contains("lack tensors") && Contains("'up.weight'"));
  CHECK_THROWS_WITH(load_compiled("net/net.pt2", {.weights = "smaller.pt"}),
                    Contains("'up.weight' is float32 [4, 3], and not float32 [8, 3]"));
  CHECK_THROWS_WITH(load_compiled("own.pt2", {.weights = "smaller.pt"}),
                    Contains("'up.weight' is float32 [4, 3], and not float32 [8, 3]"));
  const auto converted = load_compiled("net/net.pt2", {.weights = "double.pt"});
  CHECK(converted->named_parameters()["up.weight"].scalar_type() == at::kFloat);
  CHECK(at::allclose(converted->forward(x, x)[0], of_others, 1e-5, 1e-6));
  std::filesystem::create_directories("alone");
  std::filesystem::copy("net/net.pt2", "alone/net.pt2");
  CHECK_THROWS_WITH(load_compiled("alone/net.pt2"), Contains("has no weights of its own"));
}

TEST_CASE("tied weights, constants and other strides are those of Python", "[.][compiled]") {
  const auto results = weights::open_weights("results.pt");
  const auto ids = at::arange(6).view({2, 3});
  const auto net = load_compiled("net/tied.pt2");
  CHECK(at::allclose(net->forward(ids)[0], results->tensor("of_tied"), 1e-5, 1e-5));
  const auto other =
      load_compiled("net/tied.pt2", {.weights = "tied.pt"});  // one name of the tied weight, no constants
  CHECK(at::allclose(other->forward(ids)[0], results->tensor("of_other_tied"), 1e-5, 1e-5));
}

TEST_CASE("packages of another PyTorch, for another processor, and with damaged notes are refused", "[.][compiled]") {
  const auto weights = std::filesystem::path("net/net.weights.pt");  // of a Python without safetensors
  const auto load = [&](const std::string& package) {
    return load_compiled(package,
                         {.weights = std::filesystem::exists(weights) ? weights : "net/net.weights.safetensors"});
  };
  const auto x = at::arange(12, at::kFloat).view({4, 3}) / 7;
  for (const auto* package : {"same.pt2", "other_build.pt2"})
    CHECK(at::allclose(load(package)->forward(x, x)[1], 2 * x));
  CHECK_THROWS_WITH(load("other_version.pt2"), Contains("was made by PyTorch 1.0.0") && Contains("compile it again"));
  CHECK_THROWS_WITH(load("other_processor.pt2"), Contains("AVX2 AMX_TILE") && Contains("illegal instruction"));
  for (const auto* package : {"damaged_0.pt2", "damaged_1.pt2", "damaged_2.pt2"}) {
    INFO(package);
    CHECK_THROWS_WITH(load(package), Contains("does not describe its weights") && Contains("compile it again"));
  }
}

TEST_CASE("a missing or damaged compiled package is refused") {
  const test::OwnFolder folder("compiled");
  std::filesystem::create_directories(folder.path);
  const auto file = folder.path / "damaged.pt2";
  CHECK_THROWS_WITH(load_compiled(file), Contains("no compiled package"));
  std::ofstream(file) << "no package";
  CHECK_THROWS_WITH(load_compiled(file), Contains("cannot be loaded"));
}
