// Gradients through the public API: no_sync, ddp options, shared and frozen parameters, several models.
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>

#include <cmath>

#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;
using test::Net;
using test::same_on_all_ranks;

namespace {

at::Tensor input(const State& state, double scale = 1) { return at::full({2, 3}, scale * (state.process_index() + 1)); }

// A layer without bias whose gradient is the input, summed over the batch: 2 (rank + 1) in each element.
struct OneLayer {
  torch::nn::Linear net{torch::nn::LinearOptions(3, 1).bias(false)};
  double mean(const State& state) const { return (state.num_processes() + 1.0); }
  bool gradient_is(double value) const { return at::allclose(net->weight.grad(), at::full({1, 3}, value)); }
};

// A layer whose weight may be shared with another layer.
struct Tied : torch::nn::Module {
  explicit Tied(const at::Tensor& shared)
      : weight(register_parameter("weight", shared)), bias(register_parameter("bias", at::zeros({3}))) {}
  at::Tensor forward(const at::Tensor& x) { return at::tanh(x.matmul(weight) + bias); }
  at::Tensor weight;
  at::Tensor bias;
};

}  // namespace

TEST_CASE("no_sync keeps gradients on their rank; the next backward averages their sum") {
  Accelerator accelerator;
  OneLayer one;
  auto model = accelerator.prepare(one.net);
  const double mine = 2.0 * (accelerator.process_index() + 1);
  for (int round = 0; round < 2; ++round) {
    model.zero_grad();
    {
      auto local = accelerator.no_sync(model);
      accelerator.backward(model(input(accelerator)).sum());
      model(input(accelerator)).sum().backward();
      CHECK(one.gradient_is(2 * mine));
    }
    accelerator.backward(model(input(accelerator)).sum());
    CHECK(one.gradient_is(3 * one.mean(accelerator)));
  }
}

TEST_CASE("one model is not synchronised while another trains through it") {
  Accelerator accelerator;
  torch::nn::Linear g(3, 3);
  torch::nn::Linear d(3, 1);
  auto [generator, critic] = accelerator.prepare(g, d);
  for (int step = 0; step < 3; ++step) {
    auto fake = generator(input(accelerator));
    accelerator.backward(critic(fake.detach()).sum() + critic(input(accelerator)).sum());
    CHECK(same_on_all_ranks(accelerator, d->weight.grad()));
    d->zero_grad();
    auto critic_unsynchronised = accelerator.no_sync(critic);
    accelerator.backward(critic(fake).sum());
    CHECK(same_on_all_ranks(accelerator, g->weight.grad()));
    CHECK(same_on_all_ranks(accelerator, d->weight.grad()) == (accelerator.num_processes() == 1));
    g->zero_grad();
    d->zero_grad();
  }
}

TEST_CASE("no_sync takes several models, and refuses one whose Accelerator was destroyed") {
  OneLayer a;
  OneLayer b;
  std::optional<Accelerator> accelerator;
  accelerator.emplace();
  auto [first, second] = accelerator->prepare(a.net, b.net);
  {
    auto local = accelerator->no_sync(first, second);
    auto moved = std::move(local);
    accelerator->backward(first(input(*accelerator)).sum() + second(input(*accelerator)).sum());
    CHECK(a.gradient_is(2.0 * (accelerator->process_index() + 1)));
    CHECK(b.gradient_is(2.0 * (accelerator->process_index() + 1)));
  }
  accelerator->backward(first(input(*accelerator, 0)).sum() + second(input(*accelerator, 0)).sum());
  CHECK(a.gradient_is(a.mean(*accelerator)));
  CHECK(b.gradient_is(a.mean(*accelerator)));
  accelerator.reset();
  CHECK_THROWS_WITH(NoSync(std::vector<ModelBase>{first}), ContainsSubstring("after its Accelerator was destroyed"));
}

TEST_CASE("parameters that layers or models share are averaged once, also when only one of the models is used") {
  Accelerator accelerator({.ddp = {.bucket_cap_mb = 1e-9, .find_unused_parameters = true}});
  const auto shared = at::full({3, 3}, 0.1);
  auto encoder = std::make_shared<Tied>(shared);
  auto decoder = std::make_shared<Tied>(shared);
  auto [first, second] = accelerator.prepare(encoder, decoder);
  for (int step = 0; step < 6; ++step) {
    encoder->zero_grad();
    decoder->zero_grad();
    const auto x = input(accelerator, 0.1);
    const auto y = step < 3 ? first(second(first(x))) : second(x);
    const auto loss = y.sum();
    const auto exact = torch::autograd::grad({loss}, {shared, decoder->bias}, {}, /*retain_graph=*/true);
    accelerator.backward(loss);
    CHECK(at::allclose(shared.grad(), accelerator.reduce(exact[0], Reduce::mean), 1e-4, 1e-6));
    CHECK(at::allclose(decoder->bias.grad(), accelerator.reduce(exact[1], Reduce::mean), 1e-4, 1e-6));
    CHECK(encoder->bias.grad().defined() == (step < 3));
  }
}

TEST_CASE("find_unused_parameters skips parameters that no rank used, and averages those that some ranks used") {
  Accelerator accelerator({.ddp = {.find_unused_parameters = true}});
  Net net;
  auto model = accelerator.prepare(net);
  accelerator.backward(model->hidden(input(accelerator)).sum());
  CHECK_FALSE(net->out->weight.grad().defined());
  CHECK(same_on_all_ranks(accelerator, net->hidden->weight.grad()));
  const bool whole = accelerator.process_index() == 0;
  accelerator.backward((whole ? model(input(accelerator)) : model->hidden(input(accelerator))).sum());
  CHECK(same_on_all_ranks(accelerator, net->out->weight.grad()));
  CHECK(same_on_all_ranks(accelerator, net->hidden->weight.grad()));
}

TEST_CASE("training in a 16-bit communication type stays equal on all ranks and close to the exact result") {
  const auto train = [](const DistributedDataParallelOptions& ddp) {
    Accelerator accelerator({.ddp = ddp});
    at::manual_seed(5);
    Net net;
    torch::optim::SGD sgd(net->parameters(), 0.05);
    auto [model, optimizer] = accelerator.prepare(net, sgd);
    for (int step = 0; step < 10; ++step) {
      accelerator.backward(model(input(accelerator, 0.1 * (step + 1))).pow(2).sum());
      optimizer.step();
      optimizer.zero_grad();
    }
    for (const auto& parameter : net->parameters()) CHECK(same_on_all_ranks(accelerator, parameter));
    return net->hidden->weight.detach().clone();
  };
  const auto exact = train({});
  using Hook = DDPCommunicationHookType;
  for (const auto hook : {Hook::fp32, Hook::bf16, Hook::fp16}) {
    for (const bool feedback : {false, true})
      CHECK(at::allclose(train({.comm_hook = hook, .error_feedback = feedback}), exact, 1e-2, 1e-2));
  }
}

TEST_CASE("invalid ddp options are refused at construction") {
  CHECK_THROWS_WITH(Accelerator({.ddp = {.bucket_cap_mb = -1}}),
                    ContainsSubstring("ddp.bucket_cap_mb: expected a number above 0, got '-1'"));
}

TEST_CASE("broadcast_buffers copies rank 0's buffers before forward and after backward, and can be switched off") {
  for (const bool on : {true, false}) {
    Accelerator accelerator({.ddp = {.broadcast_buffers = on}});
    const bool is_single = accelerator.num_processes() == 1;
    torch::nn::BatchNorm1d norm(3);
    auto model = accelerator.prepare(norm);
    const auto x = at::rand({4, 3}) + accelerator.process_index();
    const auto loss = model(x).sum() + model(x).sum();  // the second starts from rank 0's buffers of the first
    const auto own_mean = x.mean(0);
    const auto first = accelerator.broadcast(own_mean.clone()) * 0.1;
    const auto base = on ? first : own_mean * 0.1;
    CHECK(at::allclose(norm->running_mean, base * 0.9 + own_mean * 0.1, 1e-4));
    CHECK(same_on_all_ranks(accelerator, norm->running_mean) == is_single);
    accelerator.backward(loss);
    CHECK(same_on_all_ranks(accelerator, norm->running_mean) == (is_single || on));
    CHECK(norm->num_batches_tracked.item<int>() == 2);
    CHECK((accelerator.gradient_times().buffers > 0) == (on && !is_single));
  }
}

TEST_CASE("a forward pass without averaging sends no buffers: evaluation, no_grad, no_sync") {
  Accelerator accelerator;
  torch::nn::BatchNorm1d norm(3);
  auto model = accelerator.prepare(norm);
  const auto x = at::rand({4, 3});
  accelerator.backward(model(x).sum());
  model(x);                                    // from here on the ranks' buffers may differ
  if (!accelerator.is_last_process()) return;  // would hang if it needed the other ranks
  {
    auto local = accelerator.no_sync(model);
    model(x).sum().backward();
  }
  {
    const at::NoGradGuard no_grad;
    model(x);
  }
  model.eval();
  model(x);
  CHECK(norm->num_batches_tracked.item<int>() == 4);
}

TEST_CASE("a checkpoint holds one rank's buffers") {
  Accelerator accelerator;
  const test::Folder folder(accelerator, "buffers");
  torch::nn::BatchNorm1d norm(300);
  auto model = accelerator.prepare(norm);
  accelerator.backward(model(at::rand({4, 300})).sum());
  {
    auto local = accelerator.no_sync(model);
    model(at::full({4, 300}, accelerator.process_index() + 5.0));
  }
  accelerator.save_state(folder.path());
  const auto kept = accelerator.broadcast(norm->running_mean.clone());
  norm->running_mean.zero_();
  accelerator.load_state(folder.path());
  CHECK(at::equal(norm->running_mean, kept));
}

TEST_CASE("check_replicas_every reports diverged replicas at the requested pass") {
  Accelerator accelerator({.ddp = {.check_replicas_every = 3}});
  Net net;
  auto model = accelerator.prepare(net);
  const auto step = [&] { accelerator.backward(model(input(accelerator)).sum()); };
  step();
  if (accelerator.is_last_process()) {
    const at::NoGradGuard no_grad;
    net->hidden->bias.add_(1e-6);
  }
  step();
  if (accelerator.num_processes() == 1) return;
  CHECK_THROWS_WITH(step(), ContainsSubstring("hidden.bias of model 0 differs from the other ranks'"));
  CHECK_NOTHROW(step());
}

TEST_CASE("two Accelerators cannot have the same parameters at the same time") {
  Accelerator accelerator;
  if (accelerator.num_processes() == 1) return;
  OneLayer one;
  auto model = accelerator.prepare(one.net);
  Accelerator second;
  CHECK_THROWS_WITH(second.prepare(one.net), ContainsSubstring("another Accelerator has prepared"));
  accelerator.backward(model(input(accelerator)).sum());
  CHECK(one.gradient_is(one.mean(accelerator)));
}
