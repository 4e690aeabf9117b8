#include <torch/optim/sgd.h>

#include <algorithm>
#include <hortator/bigmodel/deferred_construction.hpp>
#include <hortator/error.hpp>

#include "stored_models.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

using namespace hortator;
using Names = std::vector<std::string>;

namespace {

/// Bits may differ between processors.
bool is_near(const at::Tensor& found, const at::Tensor& expected) {
  return found.scalar_type() == expected.scalar_type() && found.sizes() == expected.sizes() &&
         found.allclose(expected, 1e-5, 1e-6);
}

Names parameter_names(const torch::nn::Module& module) {
  Names names;
  for (const auto& item : module.named_parameters()) names.push_back(item.key());
  return names;
}

at::Tensor sum_of_trained(const std::vector<at::Tensor>& outputs) {
  at::Tensor sum;
  for (const auto& output : outputs)
    if (output.requires_grad()) sum = sum.defined() ? sum + output.sum() : output.sum();
  return sum;
}

}  // namespace

TEST_CASE("outputs and gradients of exported models are Python's") {
  const auto* name = GENERATE("mlp", "attention", "tied", "nested_outputs", "in_place", "changes_input_decomposed",
                              "no_grad", "condition", "sizes", "frozen");
  INFO(name);
  const auto expected = stored_models::tensors(name);
  const auto net = exported_module(stored_models::file(name));
  const auto outputs = stored_models::tensors_of(net->forward(stored_models::numbered(expected, "input_")));
  const auto wanted = stored_models::numbered(expected, "output_");
  REQUIRE(outputs.size() == wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(is_near(outputs[i], wanted[i]));

  sum_of_trained(outputs).backward();
  std::size_t gradients = 0;
  const auto parameters = net->named_parameters();
  const auto others = net->tied_names();
  for (const auto& stored : expected.names()) {
    if (!stored.starts_with("gradient.")) continue;
    INFO(stored);
    const auto name = stored.substr(std::string("gradient.").size());
    const auto tied = others.find(name);
    CHECK(is_near(parameters[tied == others.end() ? name : tied->second].grad(), expected.get(stored)));
    ++gradients;
  }
  CHECK(gradients == static_cast<std::size_t>(std::ranges::count_if(
                         net->parameters(), [](const at::Tensor& parameter) { return parameter.grad().defined(); })));
  CHECK(gradients > 0);
}

TEST_CASE("an exported model that is trained has Python's losses") {
  const auto* name = GENERATE("mlp", "attention", "tied");
  INFO(name);
  const auto expected = stored_models::tensors(name);
  const auto net = exported_module(stored_models::file(name));
  torch::optim::SGD sgd(net->parameters(), 0.01);
  const auto losses = expected.get("losses");
  for (std::int64_t step = 0; step < losses.size(0); ++step) {
    const auto output = net->forward(stored_models::numbered(expected, "input_"))[0];
    const auto loss = at::mse_loss(output, expected.get("target"));
    CHECK(loss.item<double>() == Approx(losses[step].item<double>()).epsilon(1e-5));
    sgd.zero_grad();
    loss.backward();
    sgd.step();
  }
}

TEST_CASE("the names of parameters, buffers, inputs and outputs are Python's") {
  const auto net = exported_module(stored_models::file("modes"));
  CHECK(parameter_names(*net) == Names{"fc.weight", "fc.bias", "norm.weight", "norm.bias"});
  CHECK(net->named_buffers().keys() == Names{"norm.running_mean", "norm.running_var", "norm.num_batches_tracked"});
  CHECK(net->input_names() == Names{"x"});
  CHECK(net->output_names() == Names{""});

  const auto nested = exported_module(stored_models::file("nested_outputs"));
  CHECK(nested->output_names() == Names{"0.hidden", "0.nothing", "0.parts.0", "0.parts.1.0", "0.parts.1.1", "1"});
  CHECK_FALSE(exported_module(stored_models::file("frozen"))->named_parameters()["base.weight"].requires_grad());
}

TEST_CASE("tied parameters are one parameter under the first of their names") {
  const auto net = exported_module(stored_models::file("tied"));
  CHECK(parameter_names(*net) == Names{"embedding.weight", "middle.weight", "middle.bias"});
  CHECK(net->tied_names() == std::map<std::string, std::string>{{"head.weight", "embedding.weight"}});
}

TEST_CASE("None is an undefined tensor, and a number a tensor without dimensions") {
  const auto net = exported_module(stored_models::file("nested_outputs"));
  const auto outputs = net->forward(at::ones({3, 4}));
  CHECK_FALSE(outputs["0.nothing"].defined());
  CHECK(outputs["1"].item<std::int64_t>() == 3);
  CHECK(outputs.are_numbers == std::vector{false, false, false, false, false, true});
  CHECK(outputs["0.hidden"].sizes() == at::IntArrayRef({3, 6}));
  CHECK_THROWS_WITH(outputs["0.hiden"], ContainsSubstring("no output '0.hiden'") && ContainsSubstring("0.hidden"));
}

TEST_CASE("inputs can be given by their names") {
  const auto net = exported_module(stored_models::file("sizes"));
  const auto x = at::rand({7, 4}), y = at::rand({5, 2});
  const auto by_name = net->forward(std::map<std::string, at::Tensor>{{"y", y}, {"x", x}});
  CHECK(by_name[0].equal(net->forward(x, y)[0]));
  CHECK_THROWS_WITH(net->forward(std::map<std::string, at::Tensor>{{"x", x}}), ContainsSubstring("Input 'y'"));
  CHECK_THROWS_WITH(net->forward(std::map<std::string, at::Tensor>{{"x", x}, {"z", y}}), ContainsSubstring("'z'"));
}

TEST_CASE("a file with two forms computes by the mode of the module") {
  const auto expected = stored_models::tensors("modes");
  const auto x = expected.get("input_0");
  const auto net = exported_module(stored_models::file("modes"));
  const auto mean = net->named_buffers()["norm.running_mean"];
  net->eval();
  CHECK(is_near(net->forward(x)[0], expected.get("output_0")));
  CHECK(mean.equal(at::zeros({8})));
  net->train();
  const auto trained = net->forward(x)[0];
  CHECK((trained == 0).any().item<bool>());  // dropout
  CHECK_FALSE(mean.equal(at::zeros({8})));
  CHECK(net->named_buffers()["norm.num_batches_tracked"].item<std::int64_t>() == 1);
}

TEST_CASE("inputs that the export does not allow are refused with their names and sizes") {
  const auto net = exported_module(stored_models::file("mlp"));
  const auto refused = [&](const std::vector<at::Tensor>& inputs, const auto& message) {
    CHECK_THROWS_WITH(net->forward(inputs), message);
  };
  refused({}, ContainsSubstring("takes 1 tensor, got 0") && ContainsSubstring("'x'"));
  refused({at::Tensor()}, ContainsSubstring("Input 'x' is an undefined tensor"));
  refused({at::rand({4})},
          ContainsSubstring("Input 'x': expected a tensor float32 [") && ContainsSubstring("got float32 [4]"));
  refused({at::ones({4, 6}, at::kLong)}, ContainsSubstring("got int64 [4, 6]"));
  refused({at::rand({4, 7})}, ContainsSubstring("dimension 1 has size 7") && ContainsSubstring("exported for 6"));
  refused({at::rand({65, 6})}, ContainsSubstring("dimension 0 has size 65") && ContainsSubstring("up to 64"));
  CHECK(net->forward(at::rand({1, 6}))[0].size(0) == 1);
  const auto sizes = exported_module(stored_models::file("sizes"));
  CHECK_NOTHROW(sizes->forward(std::vector{at::rand({10, 4}), at::rand({8, 2})}));
  CHECK_THROWS_WITH(sizes->forward(std::vector{at::rand({9, 4}), at::rand({8, 2})}),
                    ContainsSubstring("L['x'].size()[0] % 3"));
}

TEST_CASE("a converted model computes in its new type") {
  const auto net = exported_module(stored_models::file("mlp"));
  net->to(at::kDouble);
  CHECK(net->forward(at::rand({2, 6}, at::kDouble))[0].scalar_type() == at::kDouble);
}

TEST_CASE("an exported model that is constructed without memory has the same values") {
  const auto net = exported_module(stored_models::file("attention"));
  const auto late = construct_deferred([] { return exported_module(stored_models::file("attention")); });
  const auto x = stored_models::tensors("attention").get("input_0");
  CHECK(late->forward(x)[0].equal(net->forward(x)[0]));
}

TEST_CASE("a saved model has the present parameters and buffers, in both forms") {
  const test::OwnFolder folder("exported-saved");
  std::filesystem::create_directories(folder.path);
  const auto file = folder.path / "saved.pt2";
  const auto net = exported_module(stored_models::file("modes"));
  const auto x = at::rand({5, 4});
  net->forward(x);  // changes the buffers
  {
    const at::NoGradGuard no_grad;
    net->named_parameters()["fc.weight"].mul_(3);
  }
  net->write(file);
  const auto read = exported_module(file);
  for (const auto& item : net->named_parameters()) CHECK(read->named_parameters()[item.key()].equal(item.value()));
  for (const auto& item : net->named_buffers()) CHECK(read->named_buffers()[item.key()].equal(item.value()));
  net->eval();
  read->eval();
  CHECK(read->forward(x)[0].equal(net->forward(x)[0]));
  read->write(file);  // in place of itself
  CHECK(exported_module(file)->named_parameters()["fc.weight"].equal(net->named_parameters()["fc.weight"]));
}

TEST_CASE("a saved model has the present values of buffers outside the state dict as well") {
  const test::OwnFolder folder("exported-buffers");
  std::filesystem::create_directories(folder.path);
  const auto net = exported_module(stored_models::file("in_place"));
  const auto x = at::rand({4, 4});
  const auto first = net->forward(x)[0].clone();
  net->write(folder.path / "saved.pt2");
  const auto second = net->forward(x)[0].clone();
  CHECK_FALSE(second.equal(first));
  CHECK(exported_module(folder.path / "saved.pt2")->forward(x)[0].equal(second));
}

TEST_CASE("an error of an operator names the node and its module") {
  const auto net = exported_module(stored_models::file("mlp"));
  net->named_parameters()["layers.0.weight"].set_data(at::rand({8, 5}));
  CHECK_THROWS_WITH(net->forward(at::rand({2, 6})),
                    ContainsSubstring("node 'linear'") && ContainsSubstring("module layers.0"));
}
