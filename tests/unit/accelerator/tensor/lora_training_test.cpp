// Training of adapters on several ranks, against the same on one rank.
#include <hortator/error.hpp>
#include <hortator/lora.hpp>
#include <hortator/quantise.hpp>
#include <optional>

#include "accelerator/training/training.hpp"
#include "unit/accelerator/tensor/tensor_course.hpp"

using namespace hortator;
using test::check_same;
using test::Folder;
using test::TensorCourse;
using test::tensors_in;
namespace fs = std::filesystem;

namespace {

struct AdapterRun {
  std::string family = "llama";
  LoraOptions lora = {.rank = 4, .alpha = 8, .targets = {"all-linear"}};
  AcceleratorOptions options = {};
  std::int64_t first = 0, steps = 10, length = 8;
  fs::path load = {}, save = {}, adapter = {};
  bool recomputes = false;
  std::optional<WeightFormat> format = {};  ///< of the frozen weights
};

/// lora_B is not zero, so that lora_A is trained from the first step on.
template <typename Net>
void add_adapter(Net& net, const LoraOptions& options) {
  torch::manual_seed(5);
  lora(net, options);
  const at::NoGradGuard no_grad;
  for (const auto& item : net.named_parameters())
    if (item.key().find("lora_B") != std::string::npos || item.key().find("embedding_A") != std::string::npos)
      item.value().normal_(0, 0.05);
}

template <typename Net, typename Loss>
TensorCourse train_adapter_of(const AdapterRun& run, Net& net, const Loss& loss_of_step) {
  if (run.format) quantise(net, {.format = *run.format, .group = 16});
  add_adapter(net, run.lora);
  Accelerator accelerator(run.options);
  torch::optim::AdamW adam(trainable_parameters(net), torch::optim::AdamWOptions(1e-2));
  auto [model, optimizer] = accelerator.prepare(net, adam);
  if (!run.load.empty()) accelerator.load_state(run.load);
  const auto& data = accelerator::Training::of(accelerator).data();
  TensorCourse course;
  for (auto step = run.first; step < run.first + run.steps; ++step) {
    const auto loss = loss_of_step(model, step % 5, data.index(), data.size());
    accelerator.backward(loss);
    course.norms.push_back(accelerator.clip_grad_norm_(model.parameters(), 1.0).template item<double>());
    optimizer.step();
    optimizer.zero_grad();
    course.losses.push_back(accelerator.reduce(loss, Reduce::mean).template item<double>());
  }
  if (!run.save.empty()) accelerator.save_state(run.save, {.only_trainable = true});
  if (!run.adapter.empty()) save_adapter(accelerator, model, run.adapter);
  return course;
}

TensorCourse train_adapter(const AdapterRun& run) {
  if (run.family == "user") {
    return train_adapter_of(run, *test::user_transformer(),
                            [](auto& model, auto... part) { return test::user_loss(model, {part...}); });
  }
  auto net = test::tensor_model(run.family);
  if (run.recomputes) net->set_recompute_layers(true);
  if (run.family == "vit")
    return train_adapter_of(run, *net, [](auto& model, auto... part) { return test::image_loss(model, {part...}); });
  return train_adapter_of(run, *net, [&](auto& model, auto... part) {
    return test::token_loss(model, {part..., run.length});
  });
}

/// The same on the first rank, given to all.
TensorCourse train_adapter_alone(AdapterRun run) {
  const auto world = mpi::Communicator::world();
  TensorCourse course;
  {
    const test::FirstRanks first(1);
    run.options = {.mixed_precision = run.options.mixed_precision};
    run.options.communicator = first.handle();
    if (first.is_in()) course = train_adapter(run);
  }
  return {.losses = test::from_first(world, course.losses), .norms = test::from_first(world, course.norms)};
}

std::vector<AcceleratorOptions> adapter_arrangements() {
  std::vector<AcceleratorOptions> all;
  const int ranks = State().num_processes();
  for (const int stage : {0, 1, 2, 3}) all.push_back({.zero = {.stage = stage}});
  for (const int tensor : {2, 4}) {
    if (ranks % tensor != 0) continue;
    all.push_back({.parallel = {.tensor = tensor}});
    all.push_back({.parallel = {.tensor = tensor, .sequence = true}});
    all.push_back({.zero = {.stage = 3}, .parallel = {.tensor = tensor}});
  }
  return all;
}

std::string text_of(const AcceleratorOptions& options) {
  return "stage " + std::to_string(options.zero.stage.value_or(0)) + ", tensor " +
         std::to_string(options.parallel.tensor.value_or(1)) + (options.parallel.sequence ? ", sequence" : "");
}

void check_adapters_equal(const fs::path& found, const fs::path& expected) {
  const SafetensorsFile one(found / "adapter_model.safetensors"), other(expected / "adapter_model.safetensors");
  REQUIRE(one.names() == other.names());
  for (const auto& name : one.names()) {
    INFO(name);
    CHECK(at::allclose(one.get(name), other.get(name), 1e-3, 1e-4));
  }
}

}  // namespace

TEST_CASE("adapters train as on one rank, replicated, sharded and divided") {
  const State state;
  const Folder folder(state, "lora_training");
  for (const auto* family : {"llama", "gpt2", "bert", "distilbert", "vit", "user"}) {
    const auto alone = folder.path() / (std::string(family) + "-alone");
    const auto expected = train_adapter_alone({.family = family, .adapter = alone});
    for (const auto& options : adapter_arrangements()) {
      const bool has_even_sequence = std::string(family) != "user" && std::string(family) != "vit";
      if (options.parallel.sequence && !has_even_sequence) continue;
      INFO(family << ", " << text_of(options));
      const auto saved = folder.path() / "adapter";
      const auto found = train_adapter({.family = family, .options = options, .adapter = saved});
      check_same(found.losses, expected.losses);
      check_same({found.norms.front()}, {expected.norms.front()});
      check_adapters_equal(saved, alone);
    }
  }
}

TEST_CASE("adapters of embeddings, tied scores and other ranks train as on one rank") {
  for (const auto& targets : std::vector<std::vector<std::string>>{
           {"embed_tokens", "q_proj"}, {"lm_head", "down_proj"}, {"model.layers.1.self_attn.o_proj"}}) {
    for (const auto* family : {"llama", "llama of 43 tokens"}) {
      const LoraOptions lora = {
          .rank = 3, .alpha = 5, .targets = targets, .rank_pattern = {{"q_proj", 2}}, .use_rslora = true};
      const auto expected = train_adapter_alone({.family = family, .lora = lora});
      for (const auto& options : adapter_arrangements()) {
        INFO(family << ", " << targets.front() << ", " << text_of(options));
        check_same(train_adapter({.family = family, .lora = lora, .options = options}).losses, expected.losses);
      }
    }
  }
}

TEST_CASE("DoRA, biases and whole modules train as on one rank, and DoRA refuses parallel.tensor") {
  const LoraOptions dora = {.rank = 4, .targets = {"q_proj", "down_proj"}, .use_dora = true};
  const LoraOptions biased = {.rank = 4, .targets = {"c_attn"}, .lora_bias = true, .bias = LoraBias::all};
  const LoraOptions whole = {.rank = 4, .targets = {"q_proj"}, .modules_to_save = {"lm_head"}};
  for (const auto& [family, lora] : {std::pair("llama", dora), {"gpt2", biased}, {"llama", whole}}) {
    const auto expected = train_adapter_alone({.family = family, .lora = lora});
    for (const auto& options : adapter_arrangements()) {
      INFO(family << ", " << text_of(options));
      const AdapterRun run = {.family = family, .lora = lora, .options = options};
      if (lora.use_dora && options.parallel.tensor.value_or(1) > 1) {
        CHECK_THROWS_WITH(train_adapter(run),
                          Catch::Matchers::Contains("use_dora") && Catch::Matchers::Contains("parallel.tensor"));
      } else {
        check_same(train_adapter(run).losses, expected.losses);
      }
    }
  }
}

TEST_CASE("recomputed layers have the adapters' outputs, also with dropout, and 16 bits are near") {
  const LoraOptions lora = {.rank = 4, .dropout = 0.2, .targets = {"all-linear"}};
  for (const auto& options : adapter_arrangements()) {
    INFO(text_of(options));
    const auto expected = train_adapter({.lora = lora, .options = options, .steps = 4});
    CHECK(train_adapter({.lora = lora, .options = options, .steps = 4, .recomputes = true}).losses == expected.losses);
    auto bf16 = options;
    bf16.mixed_precision = Precision::bf16;
    check_same(train_adapter({.options = bf16, .steps = 4}).losses,
               train_adapter({.options = options, .steps = 4}).losses, 0.05);
  }
}

TEST_CASE("adapters of packed weights train as on one rank at every stage, and refuse parallel.tensor") {
  for (const auto* family : {"llama", "gpt2", "user"}) {
    for (const auto format : {WeightFormat::int8, WeightFormat::int4, WeightFormat::nf4}) {
      const auto expected = train_adapter_alone({.family = family, .steps = 5, .format = format});
      for (const auto& options : adapter_arrangements()) {
        INFO(family << ", " << text_of(options));
        const AdapterRun run = {.family = family, .options = options, .steps = 5, .format = format};
        if (options.parallel.tensor.value_or(1) > 1) {
          CHECK_THROWS_WITH(train_adapter(run), Catch::Matchers::Contains("packed by quantise()") &&
                                                    Catch::Matchers::Contains("parallel.tensor"));
        } else {
          check_same(train_adapter(run).losses, expected.losses);
        }
      }
    }
  }
}

TEST_CASE("a checkpoint of adapters holds only them, and any arrangement resumes from it") {
  const State state;
  const Folder folder(state, "lora_checkpoints");
  const auto alone = folder.path() / "alone";
  train_adapter_alone({.steps = 3, .save = alone});
  const auto expected = train_adapter_alone({.first = 3, .steps = 3, .load = alone});
  for (const auto& [name, tensor] : tensors_in(alone)) {
    INFO(name);
    CHECK((name.find("lora_") != std::string::npos || tensor.numel() < 10000));
    CHECK(name.find("q_proj.weight") == std::string::npos);
  }
  for (const auto& options : adapter_arrangements()) {
    INFO(text_of(options));
    check_same(train_adapter({.options = options, .first = 3, .steps = 3, .load = alone}).losses, expected.losses);
  }
}

TEST_CASE("adapters stay when weights are divided, sharded, lent and given back, also of deferred models") {
  const test::TokenRows rows(0, 0, 1, 8);
  const models::ModelInputs inputs{.input_ids = rows.ids};
  const auto make = [&](const char* family, bool is_deferred) {
    auto net =
        is_deferred ? construct_deferred([&] { return test::tensor_model(family); }) : test::tensor_model(family);
    add_adapter(*net, {.rank = 4, .alpha = 8, .targets = {"all-linear"}});
    net->eval();
    return net;
  };
  const at::NoGradGuard no_grad;
  for (const auto* family : {"llama", "gpt2"}) {
    const auto expected = make(family, false)->forward(inputs).logits;
    const auto is_same = [&](models::PretrainedModel& net, Accelerator& accelerator) {
      auto logits = net.forward(inputs).logits;
      if (accelerator.options().parallel.tensor.value_or(1) > 1)
        logits = accelerator.gather(logits).narrow(0, 0, expected.size(0));
      return at::allclose(logits, expected, 1e-4, 1e-5);
    };
    for (const auto& options : adapter_arrangements()) {
      for (const bool is_deferred : {false, true}) {
        for (const bool evaluates : {false, true}) {
          INFO(family << ", " << text_of(options) << ", deferred " << is_deferred << ", evaluates " << evaluates);
          auto net = make(family, is_deferred);
          {
            Accelerator accelerator(options);
            auto model = accelerator.prepare_model(net, {.evaluation_mode = evaluates});
            CHECK(is_same(*net, accelerator));
            {
              const SummonedParameters summoned(model, {});
              CHECK(at::allclose(net->forward(inputs).logits, expected, 1e-4, 1e-5));
            }
            CHECK(is_same(*net, accelerator));
            accelerator.free_memory();
          }
          CHECK(at::allclose(net->forward(inputs).logits, expected, 1e-4, 1e-5));
        }
      }
    }
  }
}

TEST_CASE("what is trained of a prepared model has to be the adapter that is saved") {
  const State state;
  const Folder folder(state, "lora_saving");
  Accelerator accelerator({.zero = {.stage = 3}});
  auto net = test::tensor_model("llama");
  lora(net, {.targets = {"q_proj"}});
  lora(net, {.targets = {"q_proj"}, .name = "other"});
  auto model = accelerator.prepare(net);
  save_adapter(accelerator, model, folder.path() / "other", "other");
  CHECK_THROWS_WITH(save_adapter(accelerator, model, folder.path() / "default"),
                    Catch::Matchers::Contains("does not belong to the adapter 'default'"));
  auto again = test::tensor_model("llama");
  load_adapter(again, folder.path() / "other");
  CHECK(adapted_layers(again).size() == 2);
}

TEST_CASE("one rank cannot save, merge or add the adapters of a divided model") {
  const State state;
  if (state.num_processes() % 2 != 0) return;
  const Folder folder(state, "lora_divided");
  Accelerator accelerator({.parallel = {.tensor = 2}});
  auto net = test::tensor_model("llama");
  lora(net, {.targets = {"q_proj"}});
  auto model = accelerator.prepare(net);
  CHECK_THROWS_WITH(save_adapter(net, folder.path() / "alone"), Catch::Matchers::Contains("divided among ranks"));
  CHECK_THROWS_WITH(merge_adapters(net), Catch::Matchers::Contains("divided among tensor ranks"));
  CHECK_THROWS_WITH(lora(net, {.targets = {"q_proj"}, .name = "late"}), Catch::Matchers::Contains("before prepare()"));
}
