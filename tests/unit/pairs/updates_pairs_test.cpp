// Updates that end in the middle: by a load, by free_memory(), or by an optimizer that throws on one rank.
#include <torch/optim/rmsprop.h>

#include <stdexcept>

#include "../accelerator/fixtures.hpp"
#include "step/capture/step_recording.hpp"
#include "step/optimizer/optimizer_core.hpp"
#include "support/catch.hpp"
#include "unit/accelerator/zero/zero_fixture.hpp"

using namespace hortator;
using test::are_equal;
using test::copies_of;

namespace {

AcceleratorOptions two_micro_steps(int stage) { return {.gradient_accumulation_steps = 2, .zero = {.stage = stage}}; }

struct GroupRun {
  explicit GroupRun(int stage) : accelerator(two_micro_steps(stage)) {}

  Accelerator accelerator;
  test::Shardable net;
  std::unique_ptr<torch::optim::Optimizer> plain = test::make_adamw(net);
  Model<test::Shardable> model = accelerator.prepare(net);
  Optimizer optimizer = accelerator.prepare(*plain);

  void micro_step(int number, bool as_sum) {
    const auto scope = accelerator.accumulate(model);
    const auto loss = model(test::batch(accelerator, number)).square();
    as_sum ? accelerator.backward(loss.sum(), 30.0 + number) : accelerator.backward(loss.mean());
    optimizer.step();
    optimizer.zero_grad();
  }
  std::vector<at::Tensor> weights() {
    const auto whole = accelerator.summon_full_parameters(model);
    return copies_of(*net);
  }
};

/// Where ranks exchange in a step.
enum class Kind { elementwise, sliced };

class Throwing final : public NamedOptimizer, public ElementwiseOptimizer {
 public:
  Throwing(std::vector<at::Tensor> parameters, bool throws)
      : NamedOptimizer({torch::optim::OptimizerParamGroup(std::move(parameters))}, NamedOptions({{"lr", 0.1}}, {})),
        throws_(throws) {}

 private:
  void update(at::Tensor& /*parameter*/, const at::Tensor& /*gradient*/, MomentState& /*state*/,
              const NamedOptions& /*options*/) override {
    if (throws_) throw std::runtime_error("planted in the step");
  }
  bool throws_;
};

class ThrowingSlices final : public SlicedOptimizer {
 public:
  ThrowingSlices(std::vector<at::Tensor> parameters, bool throws)
      : SlicedOptimizer({torch::optim::OptimizerParamGroup(std::move(parameters))}, NamedOptions({{"lr", 0.1}})),
        throws_(throws) {}

 private:
  void step_parameters(std::vector<SteppedParameter>& /*parameters*/, const NamedOptions& /*options*/,
                       const ParameterSlices& slices) override {
    if (throws_) throw std::runtime_error("planted in the step");
    auto sum = at::zeros({}, at::kDouble);
    slices.sum(sum);
  }
  bool throws_;
};

}  // namespace

TEST_CASE("a load in the middle of a group drops what was added up before") {
  const State all;
  for (const int stage : {0, 1, 2, 3}) {
    for (const bool as_sum : {false, true}) {
      INFO("stage " << stage << (as_sum ? ", sums" : ""));
      const test::Folder folder(all, "load_in_group");
      GroupRun run(stage);
      for (int i = 0; i < 2; ++i) run.micro_step(i, as_sum);
      run.accelerator.save_state(folder.path());
      run.accelerator.wait_for_checkpoint();
      for (int i = 2; i < 5; ++i) run.micro_step(i, as_sum);
      run.accelerator.load_state(folder.path());
      GroupRun fresh(stage);
      fresh.accelerator.load_state(folder.path());
      for (auto* one : {&run, &fresh}) {
        for (int i = 6; i < 8; ++i) one->micro_step(i, as_sum);
      }
      CHECK(are_equal(run.weights(), fresh.weights()));
    }
  }
}

TEST_CASE("a load in the middle of a reproducible group drops the sums of its shards") {
  const State all;
  const test::Folder folder(all, "load_in_shards");
  struct ReproducibleRun {
    Accelerator accelerator{{.gradient_accumulation_steps = 3, .reproducible = true, .virtual_shards = 2}};
    test::Net net;
    torch::optim::SGD sgd{net->parameters(), 0.1};
    Model<test::Net> model = accelerator.prepare(net);
    Optimizer optimizer = accelerator.prepare(sgd);
    decltype(data_loader(test::Rows{24}, {.batch_size = 1})) loader =
        accelerator.prepare(data_loader(test::Rows{24}, {.batch_size = 1}));

    void take(
        int steps, const std::function<void()>& at_end = [] {}) {
      const int batches = steps * 2 / accelerator.num_processes();
      int taken = 0;
      for (auto& batch : loader) {
        const auto scope = accelerator.accumulate(model);
        accelerator.backward((model(batch.data) - batch.target).square().mean());
        optimizer.step();
        optimizer.zero_grad();
        if (++taken < batches) continue;
        at_end();
        break;
      }
    }
  };
  ReproducibleRun run;
  run.take(3);
  run.accelerator.save_state(folder.path());
  run.accelerator.wait_for_checkpoint();
  run.take(2, [&] { run.accelerator.load_state(folder.path()); });  // of the three steps of an update
  ReproducibleRun fresh;
  fresh.accelerator.load_state(folder.path());
  for (auto* one : {&run, &fresh}) one->take(3);
  CHECK(test::same_parameters(*run.net, *fresh.net));
  CHECK(at::equal(run.net->named_buffers()["calls"], fresh.net->named_buffers()["calls"]));
}

TEST_CASE("free_memory() in the middle of a group begins the next one without its gradients and counts") {
  for (const int stage : {0, 2}) {
    for (const bool as_sum : {false, true}) {
      INFO("stage " << stage << (as_sum ? ", sums" : ""));
      std::vector<std::vector<at::Tensor>> weights;
      for (const bool interrupted : {true, false}) {
        Accelerator accelerator(two_micro_steps(stage));
        test::Shardable net;
        const auto plain = test::make_adamw(net);
        const auto micro_step = [&](auto& model, auto& optimizer, int number) {
          const auto scope = accelerator.accumulate(model);
          const auto loss = model(test::batch(accelerator, number)).square();
          as_sum ? accelerator.backward(loss.sum(), 30.0 + number) : accelerator.backward(loss.mean());
          optimizer.step();
          optimizer.zero_grad();
        };
        if (interrupted) {
          auto [model, optimizer] = accelerator.prepare(net, *plain);
          micro_step(model, optimizer, 5);
          accelerator.free_memory();
        }
        auto [model, optimizer] = accelerator.prepare(net, *plain);
        for (int i = 0; i < 2; ++i) micro_step(model, optimizer, i);
        const auto whole = accelerator.summon_full_parameters(model);
        weights.push_back(copies_of(*net));
      }
      CHECK(are_equal(weights[0], weights[1]));
    }
  }
}

TEST_CASE("an own optimizer that throws on one rank under ZeRO is an error on all ranks") {
  const State all;
  for (const int stage : {1, 2, 3}) {
    for (const auto kind : {Kind::elementwise, Kind::sliced}) {
      INFO("stage " << stage << ", kind " << static_cast<int>(kind));
      Accelerator accelerator({.zero = {.stage = stage}});
      test::Shardable net;
      const bool throws = all.is_last_process();
      std::unique_ptr<torch::optim::Optimizer> own;
      if (kind == Kind::elementwise) own = std::make_unique<Throwing>(test::distinct(*net), throws);
      if (kind == Kind::sliced) own = std::make_unique<ThrowingSlices>(test::distinct(*net), throws);
      auto [model, optimizer] = accelerator.prepare(net, *own);
      accelerator.backward(model(test::batch(accelerator, 0)).square().mean());
      CHECK_THROWS(optimizer.step());
      all.wait_for_everyone();
    }
  }
}

TEST_CASE("an optimizer without a fused kernel cannot step in a step that is recorded") {
  const auto session = std::make_shared<step::AcceleratorSession>();
  torch::nn::Linear net(2, 1);
  torch::optim::RMSprop own(net->parameters());
  step::OptimizerCore optimizer(
      own, session,
      {.gradients_synchronised = [] { return true; }, .synchronise = [] {}, .cleared = [](const auto&) {}});
  step::StepRecording recording(at::kCPU);
  session->record_into(&recording);
  CHECK_THROWS_WITH(optimizer.step(),
                    ContainsSubstring("This optimizer's step cannot be recorded (accelerator.capture)"));
  session->record_into(nullptr);
}
