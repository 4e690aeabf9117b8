// A bad loss or gradient of one rank is left out on all ranks, or ends the run on all ranks, in every precision.
#include <torch/optim/sgd.h>

#include <limits>
#include <optional>
#include <stdexcept>

#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"
#include "unit/accelerator/zero/zero_fixture.hpp"

using namespace hortator;
using test::are_equal;
using test::batch;
using test::copies_of;
using test::Shardable;

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

enum class Fault { none, loss, gradient, spike };

struct Case {
  int stage = 0;
  Precision precision = Precision::no;
  ProtectionOptions protection = {.on_nonfinite = OnNonfinite::skip};
  bool scaler = true;
};

AcceleratorOptions options_of(const Case& one, const std::filesystem::path& folder = {}) {
  AcceleratorOptions options{.mixed_precision = one.precision,
                             .protection = one.protection,
                             .ddp = {.bucket_cap_mb = 3e-3},
                             .zero = {.stage = one.stage},
                             .project = {.dir = folder}};
  options.grad_scaler.enabled = one.scaler;
  options.grad_scaler.init_scale = 64;
  return options;
}

struct Run {
  explicit Run(const Case& one, const std::filesystem::path& folder = {}) : accelerator(options_of(one, folder)) {}

  Accelerator accelerator;
  Shardable net;
  std::unique_ptr<torch::optim::Optimizer> plain = test::make_adamw(net);
  Model<Shardable> model = accelerator.prepare(net);
  Optimizer optimizer = accelerator.prepare(*plain);

  /// One update, which one rank spoils.
  void update(int step, Fault fault) {
    const bool is_spoiler = accelerator.process_index() == step % accelerator.num_processes();
    auto loss = model(batch(accelerator, step)).to(at::kFloat).square().mean();
    if (is_spoiler && fault == Fault::loss) loss = loss * not_a_number;
    if (is_spoiler && fault == Fault::spike) loss = loss * 1000;
    if (is_spoiler && fault == Fault::gradient)
      loss.register_hook([](const at::Tensor& g) { return g * not_a_number; });
    accelerator.backward(loss);
    optimizer.step();
    optimizer.zero_grad();
  }
  bool is_same_everywhere() {
    const auto all = accelerator.gather(
        at::cat({net->first->weight.detach().flatten(), net->scale.detach().view({1})}).unsqueeze(0));
    return (all == all[0]).all().item<bool>();
  }
};

/// Trains for `steps` updates, without those that have a fault.
std::vector<at::Tensor> train(const Case& one, Fault fault, int steps = 6) {
  Run run(one);
  for (int step = 0; step < steps; ++step) {
    const bool spoil = step % 3 == 1;
    if (spoil && fault == Fault::none) continue;
    run.update(step, spoil ? fault : Fault::none);
    CHECK(run.optimizer.step_was_skipped() == spoil);
  }
  CHECK(run.is_same_everywhere());
  auto parameters = copies_of(*run.net);
  run.accelerator.wait_for_everyone();
  return parameters;
}

const std::vector<Case> cases = {{.stage = 0},
                                 {.stage = 1},
                                 {.stage = 2},
                                 {.stage = 3},
                                 {.stage = 0, .precision = Precision::bf16},
                                 {.stage = 2, .precision = Precision::bf16},
                                 {.stage = 0, .precision = Precision::fp16},
                                 {.stage = 2, .precision = Precision::fp16},
                                 {.stage = 0, .precision = Precision::fp16, .scaler = false},
                                 {.stage = 3, .precision = Precision::fp16, .scaler = false}};

}  // namespace

TEST_CASE("a loss or gradient of one rank that is not finite skips the update on all ranks, in every precision") {
  for (const auto& one : cases) {
    INFO("stage " << one.stage << ", " << to_string(one.precision) << (one.scaler ? "" : " without the scaler"));
    const auto expected = train(one, Fault::none);
    for (const auto& parameter : expected) CHECK(at::isfinite(parameter).all().item<bool>());
    const auto after_loss = train(one, Fault::loss);
    CHECK(are_equal(train(one, Fault::gradient), after_loss));
    // The scaler of fp16 also lowers the scale, so that later gradients are rounded differently.
    const bool lowers_scale = one.precision == Precision::fp16 && one.scaler;
    if (lowers_scale) {
      for (const auto& parameter : after_loss) CHECK(at::isfinite(parameter).all().item<bool>());
    } else {
      CHECK(are_equal(after_loss, expected));
    }
  }
}

TEST_CASE("stop throws on all ranks, with parameters as after the last good update") {
  for (const int stage : {0, 1, 2, 3}) {
    for (const auto fault : {Fault::loss, Fault::gradient}) {
      INFO("stage " << stage);
      Run run({.stage = stage, .protection = {.on_nonfinite = OnNonfinite::stop}});
      run.update(0, Fault::none);
      run.accelerator.wait_for_everyone();
      const auto before = copies_of(*run.net);
      CHECK_THROWS_WITH(run.update(1, fault), ContainsSubstring("Update 2 has a loss or gradient that is not finite"));
      CHECK(are_equal(copies_of(*run.net), before));
      run.accelerator.wait_for_everyone();
    }
  }
}

TEST_CASE("a spike of one rank's loss skips the update on all ranks, also after resuming") {
  const Accelerator all;
  const test::Folder folder(all, "protection");
  const Case one{.stage = 1, .protection = {.on_nonfinite = OnNonfinite::skip, .loss_spike_factor = 10}};
  {
    Run run(one, folder.path());
    for (int step = 0; step < 30; ++step) run.update(step, Fault::none);
    run.update(30, Fault::spike);
    CHECK(run.optimizer.step_was_skipped());
    run.update(31, Fault::none);
    CHECK_FALSE(run.optimizer.step_was_skipped());
    run.accelerator.save_state();
    run.accelerator.wait_for_checkpoint();
  }
  Run run(one, folder.path());
  run.accelerator.load_state();
  run.update(32, Fault::spike);
  CHECK(run.optimizer.step_was_skipped());
  run.accelerator.wait_for_everyone();
}

TEST_CASE("one bad micro-step skips the update of all of them, and only that one") {
  auto options = options_of({.stage = 2});
  options.gradient_accumulation_steps = 3;
  Accelerator accelerator(options);
  Shardable net;
  auto plain = test::make_adamw(net);
  auto [model, optimizer] = accelerator.prepare(net, *plain);
  std::vector<bool> skipped;
  for (int step = 0; step < 9; ++step) {
    auto micro_step = accelerator.accumulate(model);
    auto loss = model(batch(accelerator, step)).square().mean();
    if (step == 3 && accelerator.is_last_process()) loss = loss * not_a_number;
    accelerator.backward(loss);
    optimizer.step();
    if (accelerator.sync_gradients()) skipped.push_back(optimizer.step_was_skipped());
    optimizer.zero_grad();
  }
  CHECK(skipped == std::vector<bool>{false, true, false});
  accelerator.wait_for_everyone();
}

TEST_CASE("two optimizers of one backward are both skipped, and plain backward calls are protected as well") {
  Accelerator accelerator({.protection = {.on_nonfinite = OnNonfinite::skip}});
  torch::nn::Linear net(3, 3);
  torch::optim::SGD of_weight({net->weight}, 0.1), of_bias({net->bias}, 0.1);
  auto [model, first, second] = accelerator.prepare(net, of_weight, of_bias);
  for (int step = 0; step < 6; ++step) {
    const bool spoil = step == 1 || step == 4;
    auto loss = model(at::ones({2, 3})).square().mean();
    if (spoil && accelerator.is_last_process()) loss = loss * not_a_number;
    step < 3 ? accelerator.backward(loss) : loss.backward();
    first.step();
    second.step();
    CHECK(first.step_was_skipped() == spoil);
    CHECK(second.step_was_skipped() == spoil);
    first.zero_grad();
    second.zero_grad();
  }
  CHECK(at::isfinite(net->weight).all().item<bool>());
  accelerator.wait_for_everyone();
}

TEST_CASE("a bad gradient of one optimizer's parameters skips all that step after the same backward pass") {
  for (const int stage : {0, 1, 2, 3}) {
    INFO("stage " << stage);
    Accelerator accelerator({.protection = {.on_nonfinite = OnNonfinite::skip}, .zero = {.stage = stage}});
    torch::nn::Linear net(3, 3), other(3, 3);
    torch::optim::SGD of_net(net->parameters(), 0.1), of_other(other->parameters(), 0.1);
    auto [model, second_model, first, second] = accelerator.prepare(net, other, of_net, of_other);
    for (int step = 0; step < 4; ++step) {
      const bool spoil = step == 1 || step == 2;
      const auto out = second_model(at::ones({2, 3}));
      if (spoil && accelerator.is_last_process())
        out.register_hook([](const at::Tensor& g) { return g * not_a_number; });
      accelerator.backward(model(at::ones({2, 3})).square().mean() + out.square().mean());
      first.step();  // its own gradients are finite
      second.step();
      CHECK(first.step_was_skipped() == spoil);
      CHECK(second.step_was_skipped() == spoil);
      step == 1 ? first.zero_grad() : model.zero_grad();
      step == 1 ? second.zero_grad() : second_model.zero_grad();
    }
    accelerator.wait_for_everyone();
  }
}

TEST_CASE("gradients of an update that was left out do not spoil another optimizer's") {
  Accelerator accelerator({.protection = {.on_nonfinite = OnNonfinite::skip}});
  torch::nn::Linear net(3, 3), other(3, 3);
  torch::optim::SGD of_net(net->parameters(), 0.1), of_other(other->parameters(), 0.1);
  auto [model, second_model, first, second] = accelerator.prepare(net, other, of_net, of_other);
  accelerator.backward(second_model(at::ones({2, 3})).square().mean() * not_a_number);
  second.step();
  CHECK(second.step_was_skipped());
  accelerator.backward(model(at::ones({2, 3})).square().mean());  // the others' gradients are still there
  first.step();
  CHECK_FALSE(first.step_was_skipped());
  accelerator.wait_for_everyone();
}

TEST_CASE("losses given as sums are judged as means") {
  Accelerator accelerator({.protection = {.on_nonfinite = OnNonfinite::skip, .loss_spike_factor = 3}});
  torch::nn::Linear net(3, 3);
  torch::optim::SGD sgd(net->parameters(), 0.0);
  auto [model, optimizer] = accelerator.prepare(net, sgd);
  const auto update = [&](double count, double factor = 1) {
    const auto loss = model(at::ones({2, 3})).square().mean() * factor;
    accelerator.backward(loss * count, count);
    optimizer.step();
    optimizer.zero_grad();
    return optimizer.step_was_skipped();
  };
  for (int step = 0; step < 25; ++step) CHECK_FALSE(update(10));
  CHECK_FALSE(update(1000));
  CHECK_FALSE(update(0));
  CHECK(update(10, 4));
  CHECK_FALSE(update(1));
  accelerator.wait_for_everyone();
}

TEST_CASE("updates that are always bad end the run on all ranks") {
  Run run({.protection = {.on_nonfinite = OnNonfinite::skip, .max_skips_in_a_row = 3}});
  for (int step = 0; step < 2; ++step) run.update(step, Fault::gradient);
  run.update(2, Fault::none);
  for (int step = 3; step < 5; ++step) run.update(step, Fault::gradient);
  CHECK_THROWS_WITH(run.update(5, Fault::gradient), ContainsSubstring("3 updates in a row were skipped"));
  run.accelerator.wait_for_everyone();
}

TEST_CASE("a rollback returns all ranks to an earlier update, and training continues from there") {
  for (const int stage : {0, 1, 2, 3}) {
    INFO("stage " << stage);
    const Case one{.stage = stage, .protection = {.on_nonfinite = OnNonfinite::rollback, .snapshot_every = 4}};
    Run run(one);
    Run expected({.stage = stage});
    for (int step = 0; step < 7; ++step) {
      run.update(step, Fault::none);
      if (step < 4) expected.update(step, Fault::none);  // the copy is made before update number 4
    }
    run.update(7, Fault::gradient);
    CHECK(run.optimizer.step_was_skipped());
    CHECK(run.accelerator.rollbacks() == 1);
    run.accelerator.wait_for_everyone();
    CHECK(are_equal(copies_of(*run.net), copies_of(*expected.net)));
    run.accelerator.wait_for_everyone();
    for (int step = 8; step < 10; ++step) {  // with the moments and step counts of that update
      run.update(step, Fault::none);
      expected.update(step, Fault::none);
    }
    run.accelerator.wait_for_everyone();
    CHECK(are_equal(copies_of(*run.net), copies_of(*expected.net)));
    run.update(10, Fault::loss);
    run.update(11, Fault::loss);
    CHECK_THROWS_WITH(run.update(12, Fault::loss), ContainsSubstring("returned 3 times to the same update"));
    CHECK(run.accelerator.rollbacks() == 3);
    run.accelerator.wait_for_everyone();
  }
}

TEST_CASE("a rollback returns averages, schedules and registered objects, and needs a good update") {
  struct Count {
    std::int64_t value = 0;
    void save(StateWriter& out) const { out.put("value", value); }
    void load(const StateReader& in) { value = in.get<std::int64_t>("value"); }
  };
  Run run({.protection = {.on_nonfinite = OnNonfinite::rollback, .snapshot_every = 3}});
  CHECK_THROWS_WITH(run.update(0, Fault::loss), ContainsSubstring("there is no good one to return to"));
  run.optimizer.zero_grad();
  Count count;
  run.accelerator.register_for_checkpointing("count", count);
  Ema ema(run.accelerator, run.model, {.decay = 0.5});
  for (int step = 1; step < 7; ++step) {
    run.update(step, Fault::none);
    ema.update();
    ++count.value;
  }
  CHECK(ema.updates() == 6);
  run.update(7, Fault::loss);
  CHECK(ema.updates() == 3);
  CHECK(count.value == 3);
  run.accelerator.wait_for_everyone();
}

TEST_CASE("free_memory ends what protection remembers: the next model has its own copy and its own mean loss") {
  for (const int stage : {0, 1, 2, 3}) {
    INFO("stage " << stage);
    Accelerator accelerator(
        options_of({.stage = stage, .protection = {.on_nonfinite = OnNonfinite::rollback, .loss_spike_factor = 5}}));
    const auto update = [&](auto& model, auto& optimizer, double loss) {
      accelerator.backward(model(at::ones({2, 3})).sum() * 1e-4 + loss);
      optimizer.step();
      optimizer.zero_grad();
      return optimizer.step_was_skipped();
    };
    {
      torch::nn::Linear net(3, 3);
      torch::optim::SGD sgd(net->parameters(), 0.1);
      auto [model, optimizer] = accelerator.prepare(net, sgd);
      for (int step = 0; step < 25; ++step) CHECK_FALSE(update(model, optimizer, 0.01));
      accelerator.free_memory();
    }
    torch::nn::Linear next(3, 3);
    torch::optim::SGD next_sgd(next->parameters(), 0.1);
    auto [model, optimizer] = accelerator.prepare(next, next_sgd);
    CHECK_THROWS_WITH(update(model, optimizer, not_a_number), ContainsSubstring("there is no good one to return to"));
    optimizer.zero_grad();
    accelerator.wait_for_everyone();
    const auto begin = copies_of(*next);
    accelerator.wait_for_everyone();
    for (int step = 0; step < 10; ++step) CHECK_FALSE(update(model, optimizer, 3));  // no spikes: these are its losses
    CHECK(update(model, optimizer, not_a_number));
    CHECK(accelerator.rollbacks() == 1);
    accelerator.wait_for_everyone();
    CHECK(are_equal(copies_of(*next), begin));
    accelerator.wait_for_everyone();
  }
}

TEST_CASE("after a load a rollback returns to what was loaded") {
  const Accelerator all;
  for (const int stage : {0, 1, 2, 3}) {
    for (const bool loads_state : {true, false}) {
      INFO("stage " << stage << (loads_state ? ", load_state" : ", load_checkpoint_in_model"));
      const test::Folder folder(all, "protection_load");
      Run run({.stage = stage, .protection = {.on_nonfinite = OnNonfinite::rollback}}, folder.path());
      for (int step = 0; step < 2; ++step) run.update(step, Fault::none);
      run.accelerator.save_state(folder.path() / "good");
      run.accelerator.wait_for_checkpoint();
      run.accelerator.save_model(run.model, folder.path() / "weights");
      run.accelerator.wait_for_everyone();
      const auto loaded = copies_of(*run.net);
      run.accelerator.wait_for_everyone();
      for (int step = 2; step < 4; ++step) run.update(step, Fault::none);
      loads_state ? run.accelerator.load_state(folder.path() / "good")
                  : run.accelerator.load_checkpoint_in_model(run.model, folder.path() / "weights");
      run.update(4, Fault::none);
      run.update(5, Fault::gradient);
      CHECK(run.accelerator.rollbacks() == 1);
      run.accelerator.wait_for_everyone();
      CHECK(are_equal(copies_of(*run.net), loaded));
      run.accelerator.wait_for_everyone();
    }
  }
}

TEST_CASE("a rollback leaves alone what replaces a copied optimizer, and its model; the next copy has both") {
  using torch::optim::AdamW;
  Accelerator accelerator({.protection = {.on_nonfinite = OnNonfinite::rollback, .snapshot_every = 2}});
  torch::nn::Linear net(3, 3), other(3, 2), latest(3, 4);
  std::optional<AdamW> replaceable(std::in_place, other->parameters());
  AdamW of_net(net->parameters());
  auto [model, other_model, first, second] = accelerator.prepare(net, other, *replaceable, of_net);
  const auto update = [&, &model = model, &second = second](auto& partner, Optimizer& of_partner, double factor) {
    const auto x = at::ones({2, 3});
    accelerator.backward((model(x).square().mean() + partner(x).square().mean()) * factor);
    of_partner.step();
    second.step();
    of_partner.zero_grad();
    second.zero_grad();
  };
  const auto moment = [&] {
    return dynamic_cast<torch::optim::AdamWParamState&>(*of_net.state().at(net->weight.unsafeGetTensorImpl()))
        .exp_avg()
        .clone();
  };
  for (int step = 0; step < 2; ++step) update(other_model, first, 1);
  const auto copied = moment();
  update(other_model, first, 1);  // the copy is made before this one
  replaceable.emplace(latest->parameters());
  auto [latest_model, replacement] = accelerator.prepare(latest, *replaceable);
  const auto begin = copies_of(*latest);
  update(latest_model, replacement, not_a_number);
  CHECK(accelerator.rollbacks() == 1);
  CHECK(at::equal(moment(), copied));
  CHECK(replaceable->state().empty());
  CHECK(are_equal(copies_of(*latest), begin));
  update(latest_model, replacement, 1);  // a copy of all is made before this one
  CHECK_FALSE(are_equal(copies_of(*latest), begin));
  update(latest_model, replacement, not_a_number);
  CHECK(accelerator.rollbacks() == 2);
  CHECK(at::equal(moment(), copied));
  CHECK(are_equal(copies_of(*latest), begin));
  accelerator.wait_for_everyone();
}

TEST_CASE("where there is no room for a new copy, a bad update has none to return to") {
  struct Fragile {
    bool fails = false;
    void save(StateWriter& out) const {
      if (fails) throw std::runtime_error("there is no memory");
      out.put("value", std::int64_t{1});
    }
    void load(const StateReader&) {}
  };
  Run run({.protection = {.on_nonfinite = OnNonfinite::rollback, .snapshot_every = 1}});
  Fragile object;
  run.accelerator.register_for_checkpointing("object", object);
  run.update(0, Fault::none);
  object.fails = true;
  CHECK_THROWS_WITH(run.update(1, Fault::none), ContainsSubstring("there is no memory"));
  object.fails = false;
  run.optimizer.zero_grad();
  CHECK_THROWS_WITH(run.update(2, Fault::loss), ContainsSubstring("there is no good one to return to"));
  run.accelerator.wait_for_everyone();
}

TEST_CASE("what cannot be protected is refused") {
  const ProtectionOptions skip{.on_nonfinite = OnNonfinite::skip};
  CHECK_THROWS_WITH(Accelerator({.protection = {.loss_spike_factor = 5}}), ContainsSubstring("nothing would be done"));
  CHECK_THROWS_WITH(Accelerator({.protection = {.on_nonfinite = OnNonfinite::skip, .loss_spike_factor = 0.5}}),
                    ContainsSubstring("loss_spike_factor is 0.5"));
  CHECK_THROWS_WITH(Accelerator({.protection = {.on_nonfinite = OnNonfinite::skip, .max_skips_in_a_row = -1}}),
                    ContainsSubstring("max_skips_in_a_row is -1"));
  CHECK_THROWS_WITH(Accelerator({.protection = skip, .reproducible = true}),
                    ContainsSubstring("protection.on_nonfinite with reproducible"));
  CHECK_THROWS_WITH(Accelerator({.grad_scaler = {.late_verdict = true}, .protection = skip}),
                    ContainsSubstring("grad_scaler.late_verdict"));
  Accelerator accelerator({.protection = skip});
  torch::nn::Linear net(3, 3);
  torch::optim::SGD sgd(net->parameters(), 0.1);
  auto [model, optimizer] = accelerator.prepare(net, sgd);
  CHECK_THROWS_WITH(optimizer.step([] { return at::ones({}); }), ContainsSubstring("with protection.on_nonfinite"));
  CHECK_THROWS_WITH(LocalSGD(accelerator, model, {}), ContainsSubstring("LocalSGD is used"));
  CHECK_THROWS_WITH(accelerator.join_uneven_inputs({model}), ContainsSubstring("join_uneven_inputs is used"));
}

TEST_CASE("if ranks ask for other protections, all of them throw") {
  if (State().num_processes() == 1) return;
  const auto mine = State().is_main_process() ? OnNonfinite::skip : OnNonfinite::stop;
  CHECK_THROWS_WITH(Accelerator({.protection = {.on_nonfinite = mine}}), ContainsSubstring("protection"));
}
