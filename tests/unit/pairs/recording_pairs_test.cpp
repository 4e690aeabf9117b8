// A step whose operators are recorded, with what else takes part in a step: it trains as one that is not.
#include <torch/nn/modules/container/sequential.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <limits>
#include <stdexcept>
#include <vector>

#include "../accelerator/fixtures.hpp"
#include "accelerator/training/training.hpp"
#include "core/whole_file.hpp"
#include "observe/operators/operator_record.hpp"
#include "support/catch.hpp"
#include "unit/accelerator/zero/zero_fixture.hpp"

using namespace hortator;
using test::are_equal;
using test::copies_of;

namespace {

using Weights = std::vector<at::Tensor>;
using Training = std::function<Weights(const AcceleratorOptions& options)>;

constexpr int recorded_step = 2, updates = 3;

std::int64_t count(const observe::StepRecord& record, std::string_view name) {
  return std::ranges::count(record.operators, name, &observe::OperatorRecord::name);
}

/// Trains without a record and with one: the weights are the same, bit by bit, and the record is whole.
observe::StepRecord recorded(const Training& train, AcceleratorOptions options = {}) {
  const State state;
  const test::Folder folder(state, "recording_pairs");
  const auto plain = train(options);
  options.record = {.operators = folder.path(), .step = recorded_step};
  CHECK(are_equal(train(options), plain));
  const auto file = folder.path() / observe::record_file(state.process_index());
  const auto text = core::read_whole(file);
  REQUIRE(text);
  auto record = observe::parse_step_record(*text, file);
  CHECK(record.step == recorded_step);
  CHECK(count(record, "updated parameter") > 0);
  CHECK(count(record, "gradient") > 0);
  CHECK(std::ranges::any_of(record.operators, [](const auto& one) { return one.is_backward; }));
  return record;
}

/// A model and its optimizer.
struct Run {
  explicit Run(const AcceleratorOptions& options) : accelerator(options) {}

  Accelerator accelerator;
  test::Shardable net;
  std::unique_ptr<torch::optim::Optimizer> plain = test::make_adamw(net);
  Model<test::Shardable> model = accelerator.prepare(net);
  Optimizer optimizer = accelerator.prepare(*plain);

  void backward(int number, double factor = 1) {
    accelerator.backward(model(test::batch(accelerator, number)).square().mean() * factor);
  }
  void step(int number, double factor = 1) {
    backward(number, factor);
    optimizer.step();
    optimizer.zero_grad();
  }
  Weights weights() {
    const auto whole = accelerator.summon_full_parameters(model);
    return copies_of(*net);
  }
};

/// Calls work(run, number) for each update.
Training each_update(const std::function<void(Run&, int)>& work) {
  return [work](const AcceleratorOptions& options) {
    Run run(options);
    for (int number = 0; number < updates; ++number) work(run, number);
    return run.weights();
  };
}

void plain_step(Run& run, int number) { run.step(number); }

}  // namespace

TEST_CASE("a step that is recorded trains as others do, at every stage of ZeRO") {
  for (const int stage : {0, 1, 2, 3}) {
    INFO("stage " << stage);
    recorded(each_update(plain_step), {.zero = {.stage = stage}});
  }
  recorded(each_update(plain_step),
           {.zero = {.stage = 3, .offload_parameters = std::filesystem::temp_directory_path()}});
}

TEST_CASE("all micro-steps of an update are in its record") {
  const auto record = recorded(each_update([](Run& run, int number) {
                                 for (const int part : {0, 1}) {
                                   const auto scope = run.accelerator.accumulate(run.model);
                                   run.backward(2 * number + part);
                                   run.optimizer.step();
                                   run.optimizer.zero_grad();
                                 }
                               }),
                               {.gradient_accumulation_steps = 2});
  const auto once = recorded(each_update(plain_step));
  CHECK(count(record, "aten::addmm") == 2 * count(once, "aten::addmm"));
  CHECK(count(record, "gradient") == count(once, "gradient"));
}

TEST_CASE("recorded steps are clipped, averaged, protected and scaled as others are") {
  recorded(each_update([](Run& run, int number) {
    run.backward(number);
    run.accelerator.clip_grad_norm_(run.model.parameters(), 0.01);
    run.optimizer.step();
    run.optimizer.zero_grad();
  }));
  recorded([](const AcceleratorOptions& options) {
    Run run(options);
    Ema ema(run.accelerator, run.model, {.decay = 0.5});
    for (int number = 0; number < updates; ++number) {
      run.step(number);
      ema.update();
    }
    const auto use = ema.use();
    return copies_of(*run.net);
  });
  const auto spoiled = [](double factor) {
    return each_update([factor](Run& run, int number) { run.step(number, number + 1 == recorded_step ? factor : 1); });
  };
  // the update that is recorded is left out
  recorded(spoiled(std::numeric_limits<double>::infinity()),
           {.mixed_precision = Precision::fp16, .grad_scaler = {.init_scale = 1024}, .cpu = true});
  recorded(spoiled(std::numeric_limits<double>::quiet_NaN()), {.protection = {.on_nonfinite = OnNonfinite::skip}});
  recorded(spoiled(std::numeric_limits<double>::quiet_NaN()), {.protection = {.on_nonfinite = OnNonfinite::rollback}});
}

TEST_CASE("steps that end early, or after a load or free_memory, are recorded whole") {
  const State state;
  const auto fails_once = [](Run& run, int number) {
    if (number + 1 == recorded_step) {
      try {
        const auto result = run.model(test::batch(run.accelerator, number));
        throw std::runtime_error("planted in the step");
      } catch (const std::runtime_error&) {
        run.optimizer.zero_grad();
      }
    }
    run.step(number);
  };
  recorded(each_update(fails_once));
  const test::Folder folder(state, "recording_pairs_state");
  recorded(each_update([&](Run& run, int number) {
    if (number + 1 == recorded_step) {
      run.accelerator.save_state(folder.path());
      run.accelerator.load_state(folder.path());
      run.accelerator.wait_for_everyone();
    }
    run.step(number);
  }));
  recorded([](const AcceleratorOptions& options) {
    Accelerator accelerator(options);
    test::Shardable net;
    auto plain = test::make_adamw(net);
    for (int number = 0; number < updates; ++number) {
      auto [model, optimizer] = accelerator.prepare(net, *plain);
      accelerator.backward(model(test::batch(accelerator, number)).square().mean());
      optimizer.step();
      optimizer.zero_grad();
      accelerator.free_memory();
    }
    return copies_of(*net);
  });
}

TEST_CASE("the optimizer that was prepared first ends the recorded step of two models") {
  const auto record = recorded([](const AcceleratorOptions& options) {
    Accelerator accelerator(options);
    torch::manual_seed(4);
    test::Net first, second;
    torch::optim::SGD of_first(first->parameters(), 0.1), of_second(second->parameters(), 0.1);
    auto [one, other, steps_one, steps_other] = accelerator.prepare(first, second, of_first, of_second);
    const auto x = at::ones({2, 3});
    for (int number = 0; number < updates; ++number) {
      accelerator.backward(other(x).sum());
      steps_other.step();
      steps_other.zero_grad();
      accelerator.backward(one(x).sum());
      steps_one.step();
      steps_one.zero_grad();
    }
    auto all = copies_of(*first);
    for (const auto& weight : copies_of(*second)) all.push_back(weight);
    return all;
  });
  CHECK(count(record, "updated parameter") == 8);
}

TEST_CASE("recomputed layers, hooks, adapters and weights that are constructed late are recorded as they train") {
  const auto layers = [] {
    torch::manual_seed(6);
    return torch::nn::Sequential(torch::nn::Linear(3, 4), torch::nn::Linear(4, 4), torch::nn::Linear(4, 1));
  };
  const auto training_of = [](const std::function<torch::nn::Sequential()>& make,
                              const std::function<at::Tensor(torch::nn::Sequential&, const at::Tensor&)>& forward) {
    return [=](const AcceleratorOptions& options) {
      Accelerator accelerator(options);
      auto net = make();
      torch::optim::SGD sgd(trainable_parameters(net), 0.1);
      auto [model, optimizer] = accelerator.prepare(net, sgd);
      for (int number = 0; number < updates; ++number) {
        accelerator.backward(forward(net, at::ones({2, 3}) * number).square().sum());
        optimizer.step();
        optimizer.zero_grad();
      }
      return copies_of(*net);
    };
  };
  const auto usual = [](torch::nn::Sequential& net, const at::Tensor& x) { return net->forward(x); };
  const auto once = recorded(training_of(layers, usual));
  const auto again = recorded(training_of(layers, [](torch::nn::Sequential& net, const at::Tensor& x) {
    const auto inner = x.clone().requires_grad_();
    return recompute([&](const at::Tensor& in) { return net->forward(in); }, inner);
  }));
  CHECK(count(again, "aten::addmm") > count(once, "aten::addmm"));
  recorded(training_of([&] { return construct_deferred(layers); }, usual));
  const auto adapted = recorded(training_of(
      [&] {
        auto net = layers();
        lora(net, {.rank = 2, .targets = {"1"}});
        return net;
      },
      usual));
  CHECK(count(adapted, "updated parameter") == 2);
}
