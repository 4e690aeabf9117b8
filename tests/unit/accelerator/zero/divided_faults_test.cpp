// What may go wrong around divided models: exceptions, memory that is replaced, and what sees one rank only.
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>
#include <torch/serialize.h>

#include <hortator/error.hpp>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "accelerator/training/training.hpp"
#include "unit/accelerator/tensor/tensor_course.hpp"

using namespace hortator;

namespace {

/// Arrangements of all ranks in which a model is divided: without ZeRO, and with it.
std::vector<AcceleratorOptions> arrangements() {
  std::vector<AcceleratorOptions> all;
  for (const int stage : {0, 2, 3}) all.push_back({.zero = {.stage = stage}, .parallel = {.tensor = 2}});
  return all;
}

at::Tensor first_loss(Accelerator& accelerator, auto& model) {
  const auto& data = accelerator::Training::of(accelerator).data();
  return test::user_loss(model, test::TokenRows(0, data.index(), data.size()));
}

/// SGD whose type Hortator does not know, so that it may look at whole parameters.
struct OwnSgd : torch::optim::SGD {
  using SGD::SGD;
};

struct FailingOptions : torch::optim::OptimizerCloneableOptions<FailingOptions> {};

/// An optimizer that saves itself, and may fail to.
struct FailingOptimizer : torch::optim::Optimizer {
  explicit FailingOptimizer(const std::vector<at::Tensor>& parameters)
      : Optimizer({torch::optim::OptimizerParamGroup(parameters)}, std::make_unique<FailingOptions>()) {}
  at::Tensor step(LossClosure) override { return {}; }
  void save(torch::serialize::OutputArchive& archive) const override {
    if (fails) throw Error({.what = "this rank cannot save"});
    archive.write("something", at::zeros({1}));
  }
  void load(torch::serialize::InputArchive&) override {}
  bool fails = false;
};

}  // namespace

TEST_CASE("after an exception within summoned parameters the model has its parts again, as they were") {
  for (const auto& options : arrangements()) {
    Accelerator accelerator(options);
    auto net = test::user_transformer();
    torch::optim::AdamW adam(net->parameters(), torch::optim::AdamWOptions(1e-3));
    auto [model, optimizer] = accelerator.prepare(*net, adam);
    const auto before = first_loss(accelerator, model).item<double>();
    const auto part = net->named_parameters()["up0.weight"].sizes().vec();
    try {
      const at::NoGradGuard no_grad;
      const auto summoned = accelerator.summon_full_parameters(model);
      CHECK(net->named_parameters()["up0.weight"].size(0) == 2 * part[0]);
      net->named_parameters()["up0.weight"].zero_();
      throw std::runtime_error("of the user");
    } catch (const std::runtime_error&) {
    }
    CHECK(net->named_parameters()["up0.weight"].sizes() == part);
    CHECK(first_loss(accelerator, model).item<double>() == before);
    accelerator.backward(first_loss(accelerator, model));
    optimizer.step();
    CHECK(first_loss(accelerator, model).item<double>() < before);
  }
}

TEST_CASE("an export within summoned parameters leaves them whole") {
  const State state;
  const test::Folder folder(state, "divided_within");
  for (const auto& options : arrangements()) {
    Accelerator accelerator(options);
    auto net = test::user_transformer();
    torch::optim::AdamW adam(net->parameters(), torch::optim::AdamWOptions(1e-3));
    auto [model, optimizer] = accelerator.prepare(*net, adam);
    const auto whole = test::user_transformer()->named_parameters();
    {
      const auto summoned = accelerator.summon_full_parameters(model);
      accelerator.save_model(model, folder.path() / "export");
      const auto dict = accelerator.get_state_dict(model);
      for (const auto& item : net->named_parameters()) CHECK(at::equal(item.value(), whole[item.key()]));
      accelerator.load_checkpoint_in_model(model, folder.path() / "export");
      for (const auto& item : net->named_parameters()) CHECK(at::equal(item.value(), whole[item.key()]));
    }
    CHECK(net->named_parameters()["up0.weight"].size(0) * 2 == whole["up0.weight"].size(0));
  }
}

TEST_CASE("an optimizer that may look at whole parameters is refused with a state from before as well") {
  auto net = test::user_transformer();
  OwnSgd sgd(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  test::user_loss(*net, test::TokenRows(0, 0, 1)).backward();
  sgd.step();
  REQUIRE(!sgd.state().empty());
  Accelerator accelerator({.parallel = {.tensor = 2}});
  auto [model, optimizer] = accelerator.prepare(*net, sgd);
  accelerator.backward(first_loss(accelerator, model));
  CHECK_THROWS_WITH(optimizer.step(), ContainsSubstring("may look at whole parameters"));
}

TEST_CASE("a divided module that is moved or converted after prepare is an error that names the parameter") {
  for (const auto& options : arrangements()) {
    Accelerator accelerator(options);
    auto net = test::user_transformer();
    auto model = accelerator.prepare(*net);
    first_loss(accelerator, model);
    net->to(at::kDouble);
    CHECK_THROWS_WITH(first_loss(accelerator, model), ContainsSubstring("was replaced after prepare()"));
    CHECK_THROWS_WITH(accelerator.summon_full_parameters(model), ContainsSubstring("was replaced after prepare()"));
    CHECK_THROWS_WITH(accelerator.save_state("divided_moved"), ContainsSubstring("was replaced after prepare()"));
  }
}

TEST_CASE("if one rank cannot save an optimizer, no rank waits for parts of the next one, and all throw") {
  Accelerator accelerator({.parallel = {.tensor = 2}});
  auto net = test::user_transformer();
  FailingOptimizer first({at::zeros({1})});
  torch::optim::AdamW adam(net->parameters(), torch::optim::AdamWOptions(1e-3));
  auto [model, failing, optimizer] = accelerator.prepare(*net, first, adam);
  accelerator.backward(first_loss(accelerator, model));
  optimizer.step();
  first.fails = accelerator.is_last_process();
  CHECK_THROWS_WITH(accelerator.save_state("divided_failing"), ContainsSubstring("this rank cannot save"));
  accelerator.wait_for_everyone();
}

TEST_CASE("gradients from before prepare are divided as their parameters are") {
  auto net = test::user_transformer();
  test::user_loss(*net, test::TokenRows(0, 0, 1)).backward();
  std::map<std::string, at::Tensor> expected;
  for (const auto& item : net->named_parameters()) expected.emplace(item.key(), item.value().grad().clone());
  {
    Accelerator accelerator({.parallel = {.tensor = 2}});
    auto model = accelerator.prepare(*net);
    for (const auto& item : net->named_parameters()) CHECK(item.value().grad().sizes() == item.value().sizes());
  }
  for (const auto& item : net->named_parameters()) CHECK(at::equal(item.value().grad(), expected.at(item.key())));
}

TEST_CASE("torch::save of a divided module is refused, and of summoned parameters writes them whole") {
  for (const auto& options : arrangements()) {
    Accelerator accelerator(options);
    auto net = test::user_transformer();
    auto model = accelerator.prepare(*net);
    std::ostringstream bytes;
    CHECK_THROWS_WITH(torch::save(net, bytes),
                      ContainsSubstring("torch::save got a tensor that is divided among ranks"));
    std::ostringstream whole;
    {
      const auto summoned = accelerator.summon_full_parameters(model);
      torch::save(net, whole);
    }
    auto read = test::user_transformer();
    {
      const at::NoGradGuard no_grad;
      for (auto& parameter : read->parameters()) parameter.zero_();
    }
    std::istringstream in(whole.str());
    torch::load(read, in);
    CHECK(test::same_parameters(*read, *test::user_transformer()));
  }
}
