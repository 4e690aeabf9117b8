// Checkpoints and weights without what is frozen, hooks that leave models out, and single files.
#include <fstream>

#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"
#include "unit/accelerator/zero/zero_fixture.hpp"

using namespace hortator;
using test::are_equal;
using test::batch;
using test::copies_of;
using test::Folder;
using test::Shardable;
namespace fs = std::filesystem;

namespace {

std::uintmax_t bytes_in(const fs::path& folder) {
  std::uintmax_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  return bytes;
}

/// A large frozen base and a small layer that is trained.
struct AdaptedImpl : torch::nn::Module {
  AdaptedImpl() {
    at::manual_seed(4);
    base = register_module("base", torch::nn::Linear(256, 256));
    adapter = register_module("adapter", torch::nn::Linear(256, 4));
    for (auto& parameter : base->parameters()) parameter.requires_grad_(false);
  }
  at::Tensor forward(const at::Tensor& x) { return adapter(base(x)); }
  torch::nn::Linear base{nullptr};
  torch::nn::Linear adapter{nullptr};
};
TORCH_MODULE(Adapted);

struct Run {
  Run(int stage, const fs::path& folder) : accelerator({.zero = {.stage = stage}, .project = {.dir = folder}}) {}

  void step() {
    accelerator.backward(model(at::ones({2, 256})).square().mean());
    optimizer.step();
    optimizer.zero_grad();
  }

  Accelerator accelerator;
  Adapted net;
  torch::optim::AdamW plain{net->adapter->parameters(), torch::optim::AdamWOptions(1e-2)};
  Model<Adapted> model = accelerator.prepare(net);
  Optimizer optimizer = accelerator.prepare(plain);
};

}  // namespace

TEST_CASE("a checkpoint of what is trained is small, resumes at any stage and leaves frozen weights alone") {
  const Accelerator all;
  for (const auto& [from, to] : {std::pair(0, 0), std::pair(3, 1), std::pair(0, 2)}) {
    INFO("stage " << from << " to " << to);
    const Folder folder(all, "trainable");
    std::vector<at::Tensor> expected;
    {
      Run run(from, folder.path());
      run.step();
      const auto saved = run.accelerator.save_state({}, {.only_trainable = true});
      run.accelerator.wait_for_checkpoint();
      if (all.is_main_process()) CHECK(bytes_in(saved) < 200'000);  // the base has 263 kB
      run.step();
      expected = copies_of(*run.net->adapter);
      run.accelerator.wait_for_everyone();
    }
    Run run(to, folder.path());
    {
      const auto whole = run.accelerator.summon_full_parameters(run.model);
      const at::NoGradGuard no_grad;
      run.net->base->bias.fill_(0.25);  // as if another base had been loaded
      run.net->adapter->bias.fill_(9);
    }
    run.accelerator.load_state();
    {
      const auto whole = run.accelerator.summon_full_parameters(run.model);
      CHECK(at::equal(run.net->base->bias, at::full({256}, 0.25)));
      const at::NoGradGuard no_grad;
      run.net->base->bias.copy_(Adapted()->base->bias);
    }
    run.step();
    run.accelerator.wait_for_everyone();
    CHECK(test::are_close(copies_of(*run.net->adapter), expected, 1e-6));
    run.accelerator.wait_for_everyone();
  }
}

TEST_CASE("weights of what is trained are those parameters only") {
  const Accelerator all;
  const Folder folder(all, "trainable_weights");
  Run run(2, {});
  run.step();
  run.accelerator.save_model(run.model, folder.path(), {.only_trainable = true});
  if (all.is_main_process()) CHECK(bytes_in(folder.path()) < 10'000);
  const auto expected = copies_of(*run.net->adapter);
  run.accelerator.wait_for_everyone();
  Adapted other;
  {
    const at::NoGradGuard no_grad;
    for (auto& parameter : other->parameters()) parameter.fill_(2);
  }
  run.accelerator.load_checkpoint_in_model(other, folder.path(), {.strict = false});
  CHECK(are_equal(copies_of(*other->adapter), expected));
  CHECK(at::equal(other->base->bias, at::full({256}, 2.0)));
  Adapted frozen;
  for (auto& parameter : frozen->parameters()) parameter.requires_grad_(false);
  CHECK_THROWS_WITH(run.accelerator.save_model(frozen, folder.path(), {.only_trainable = true}),
                    ContainsSubstring("the model has no trainable parameters"));
}

TEST_CASE("hooks get the models, and what they leave out is neither saved nor loaded") {
  const Accelerator all;
  const Folder folder(all, "left_out");
  Accelerator accelerator({.project = {.dir = folder.path()}});
  torch::nn::Linear first(256, 256), second(3, 3);
  auto [first_model, second_model] = accelerator.prepare(first, second);
  std::size_t seen = 0;
  auto saving = accelerator.register_save_state_pre_hook([&](StateHookScope& scope) {
    seen = scope.models().size();
    scope.leave_out(0);
  });
  const auto saved = accelerator.save_state();
  accelerator.wait_for_checkpoint();
  CHECK(seen == 2);
  if (all.is_main_process()) CHECK(bytes_in(saved) < 150'000);
  {
    const at::NoGradGuard no_grad;
    first->bias.fill_(5);
    second->bias.fill_(5);
  }
  accelerator.load_state();
  CHECK(at::equal(first->bias, at::full({256}, 5.0)));
  CHECK_FALSE(at::equal(second->bias, at::full({3}, 5.0)));
  saving.remove();
  accelerator.save_state();
  accelerator.wait_for_checkpoint();
  {
    const at::NoGradGuard no_grad;
    first->bias.fill_(6);
    second->bias.fill_(6);
  }
  accelerator.register_load_state_pre_hook([](StateHookScope& scope) { scope.leave_out(1); });
  accelerator.load_state();
  CHECK(at::equal(first->bias, at::full({256}, 5.0)));
  CHECK(at::equal(second->bias, at::full({3}, 6.0)));
  accelerator.register_load_state_pre_hook([](StateHookScope& scope) { scope.leave_out(2); });
  CHECK_THROWS_WITH(accelerator.load_state(), ContainsSubstring("leaves out model 2 of 2"));
}

TEST_CASE("hooks that leave out other models on other ranks are refused on all") {
  if (State().num_processes() == 1) return;
  const Accelerator all;
  const Folder folder(all, "left_out_differently");
  Accelerator accelerator({.project = {.dir = folder.path()}});
  torch::nn::Linear net(3, 3);
  auto model = accelerator.prepare(net);
  accelerator.register_save_state_pre_hook([&](StateHookScope& scope) {
    if (accelerator.is_main_process()) scope.leave_out(0);
  });
  CHECK_THROWS_WITH(accelerator.save_state(),
                    ContainsSubstring("The list of models that state hooks leave out differs"));
}

TEST_CASE("a file of tensors is written once, or once a node, and loads again") {
  const Accelerator all;
  const Folder folder(all, "saved_file");
  Accelerator accelerator;
  torch::nn::Linear net(3, 3), other(3, 3);
  StateDict state;
  for (const auto& item : net->named_parameters()) state.put(item.key(), item.value());
  const auto file = folder.path() / "nested" / "weights.bin";
  for (const bool on_each_node : {false, true}) {
    accelerator.save(state, file, {.on_each_node = on_each_node});
    accelerator.load_checkpoint_in_model(other, file);
    accelerator.wait_for_everyone();
    if (all.is_main_process()) CHECK(at::equal(other->weight, net->weight));  // nets differ between ranks
  }
  state.put("epoch", 3);
  CHECK_THROWS_WITH(accelerator.save(state, file), ContainsSubstring("'epoch', which is not a tensor"));
  CHECK_THROWS_AS(accelerator.save({}, "/proc/nowhere/weights.bin"), std::exception);
}

TEST_CASE("nested objects are saved with numbers, texts and tensors, and load again") {
  const Accelerator all;
  const Folder folder(all, "saved_object");
  Accelerator accelerator;
  const auto file = folder.path() / "object.pt";
  const auto weight = at::arange(6.0F).view({2, 3}).t();
  const std::map<std::string, at::Tensor> weights = {{"fc.weight", weight}, {"fc.bias", at::ones({3}, at::kBFloat16)}};
  accelerator.save(SavedObject::dict({{"epoch", 3},
                                      {"best", -0.5},
                                      {"done", true},
                                      {"name", "r\u00e9sum\u00e9"},
                                      {"none", nullptr},
                                      {"scores", std::vector<double>{0.25, 0.5}},
                                      {7, std::tuple("a", 1)},
                                      {"weights", weights}}),
                   file);
  const auto loaded = load(file);
  CHECK(loaded.size() == 8);
  CHECK(loaded["epoch"].as<int>() == 3);
  CHECK(loaded["best"].as<double>() == -0.5);
  CHECK(loaded["done"].as<bool>());
  CHECK(loaded["name"].as<std::string>() == "r\u00e9sum\u00e9");
  CHECK(loaded["none"].is_none());
  CHECK(loaded["scores"].as<std::vector<double>>() == std::vector{0.25, 0.5});
  CHECK(at::equal(loaded["weights"]["fc.weight"].as<at::Tensor>(), weight));
  const auto tensors = loaded["weights"].as<std::map<std::string, at::Tensor>>();
  CHECK(tensors.at("fc.bias").scalar_type() == at::kBFloat16);
  CHECK_THROWS_WITH(loaded["epochs"], ContainsSubstring("did you mean 'epoch'?"));
  CHECK_THROWS_WITH(loaded["name"].as<int>(), ContainsSubstring("is text, expected a whole number"));
  CHECK_THROWS_WITH(loaded["scores"].at(2), ContainsSubstring("2 items has none at 2"));
  CHECK_THROWS_AS(SavedObject(300).as<std::int8_t>(), UsageError);

  const TorchFile by_name(file);
  CHECK(by_name.names() == std::vector<std::string>{"weights.fc.bias", "weights.fc.weight"});
  CHECK(by_name.shape("weights.fc.weight") == std::vector<std::int64_t>{3, 2});
  CHECK(at::equal(by_name.get("weights.fc.weight"), weight));
  CHECK(at::equal(by_name.get_rows("weights.fc.weight", 1, 2), weight.slice(0, 1)));
  CHECK_THROWS_WITH(by_name.get("weights.fc.wight"), ContainsSubstring("did you mean"));
  const auto bad = SavedObject::dict({{0.5, 1}});
  CHECK_THROWS_WITH(accelerator.save(bad, file), ContainsSubstring("neither text nor a whole number"));
  CHECK(load(file).size() == 8);  // the old file stays
  accelerator.wait_for_everyone();
  accelerator.save(std::vector<std::string>{"one", "two"}, file);
  CHECK(load(file).as<std::vector<std::string>>() == std::vector<std::string>{"one", "two"});
}
