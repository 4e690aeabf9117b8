// Statistics over all ranks' samples: what one rank's BatchNorm computes on the joined batch.
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>

#include <algorithm>

#include "support/called_operators.hpp"
#include "support/catch.hpp"
#include "unit/accelerator/training/joined_batch.hpp"

using namespace hortator;
using test::close;
using Batch = test::JoinedBatch;

namespace {

// Four steps of both; `plain` sees the joined batch.
template <typename Sync, typename Plain>
void compare(std::vector<std::int64_t> shape, at::ScalarType type, const torch::nn::BatchNormOptions& options,
             std::int64_t first = 2) {
  Accelerator accelerator;
  const int ranks = accelerator.num_processes();
  const Batch batch(accelerator, std::move(shape), type, first);
  Sync sync(options);
  Plain plain(options);
  const auto norm_type = type == at::kDouble ? at::kDouble : at::kFloat;
  for (auto* module : std::initializer_list<torch::nn::Module*>{sync.get(), plain.get()}) {
    module->to(norm_type);
    const at::NoGradGuard no_grad;
    for (auto& parameter : module->parameters()) parameter.copy_(at::linspace(0.5, 1.5, parameter.numel()));
  }
  auto model = accelerator.prepare(sync);
  for (int step = 0; step < 4; ++step) {
    INFO(batch.whole.dim() << " dimensions, " << type << ", step " << step);
    auto x = (batch.own(batch.whole) + step).detach().requires_grad_();
    auto joined = (batch.whole + step).detach().requires_grad_();
    const auto y = model(x);
    const auto z = plain(joined);
    CHECK(y.scalar_type() == type);
    CHECK(close(y, batch.own(z), type));
    sync->zero_grad();
    plain->zero_grad();
    (z * batch.weights).sum().backward();
    accelerator.backward((y * batch.own(batch.weights)).sum());
    CHECK(close(x.grad(), batch.own(joined.grad()), type));
    for (const auto& item : plain->named_parameters()) {
      const auto mean = sync->named_parameters()[item.key()].grad();
      CHECK(close(mean * ranks, item.value().grad(), type));
    }
    for (const auto& item : plain->named_buffers()) {
      if (!item.value().defined()) continue;
      CHECK(close(sync->named_buffers()[item.key()], item.value(), type));
    }
  }
  model.eval();
  plain->eval();
  CHECK(close(model(batch.own(batch.whole)), batch.own(plain(batch.whole)), type));
}

torch::nn::BatchNormOptions features(std::int64_t count) { return torch::nn::BatchNormOptions(count); }

}  // namespace

TEST_CASE("all dimensions, types and options equal BatchNorm of the joined batch") {
  for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16}) {
    compare<SyncBatchNorm1d, torch::nn::BatchNorm1d>({0, 3}, type, features(3));
    compare<SyncBatchNorm1d, torch::nn::BatchNorm1d>({0, 3, 5}, type, features(3));
    compare<SyncBatchNorm2d, torch::nn::BatchNorm2d>({0, 4, 3, 2}, type, features(4));
    compare<SyncBatchNorm3d, torch::nn::BatchNorm3d>({0, 2, 3, 2, 2}, type, features(2));
  }
  compare<SyncBatchNorm1d, torch::nn::BatchNorm1d>({0, 3}, at::kDouble, features(3).momentum(std::nullopt));
  compare<SyncBatchNorm1d, torch::nn::BatchNorm1d>({0, 3}, at::kDouble, features(3).affine(false));
  compare<SyncBatchNorm2d, torch::nn::BatchNorm2d>({0, 4, 3, 2}, at::kDouble, features(4).eps(0.1).momentum(0.5));
}

TEST_CASE("without momentum, each batch counts equally, however many batches were counted before") {
  Accelerator accelerator;
  SyncBatchNorm1d sync(features(3).momentum(std::nullopt));
  sync->to(at::kDouble);
  auto model = accelerator.prepare(sync);
  const auto x = at::arange(15, at::kDouble).view({5, 3});
  for (const int before : {0, 9, 1}) {
    const at::NoGradGuard no_grad;
    sync->num_batches_tracked.fill_(before);
    sync->running_mean.zero_();
    const test::CalledOperators operators;
    sync->forward(x);
    const auto read_back = std::count(operators.names().begin(), operators.names().end(), "aten::item");
    if (accelerator.num_processes() == 1)
      CHECK(read_back == 0);  // with several ranks the number of samples is read, on the CPU only
    CHECK(close(sync->running_mean, x.mean(0) / (before + 1), at::kDouble));
    CHECK(sync->num_batches_tracked.item<int>() == before + 1);
  }
}

TEST_CASE("without tracking, statistics are those of the joined batch, and in evaluation those of this rank's batch") {
  Accelerator accelerator;
  const Batch batch(accelerator, {0, 3}, at::kDouble, 3);
  SyncBatchNorm1d sync(features(3).track_running_stats(false));
  torch::nn::BatchNorm1d plain(features(3).track_running_stats(false));
  sync->to(at::kDouble);
  plain->to(at::kDouble);
  auto model = accelerator.prepare(sync);
  const auto own = batch.own(batch.whole);
  CHECK(close(model(own), batch.own(plain(batch.whole)), at::kDouble));
  model.eval();
  CHECK(close(model(own), plain(own), at::kDouble));
}

TEST_CASE("a rank may have no samples at all") {
  if (Accelerator().num_processes() == 1) return;
  compare<SyncBatchNorm1d, torch::nn::BatchNorm1d>({0, 3}, at::kFloat, features(3), /*first=*/0);
}

TEST_CASE("a network trains as on the joined batch, with buckets in flight, recomputed or not") {
  for (const bool recomputes : {false, true}) {
    Accelerator accelerator({.ddp = {.bucket_cap_mb = 1e-9}});
    const Batch batch(accelerator, {0, 3}, at::kDouble);
    const auto make = [](auto norm) {
      at::manual_seed(6);
      torch::nn::Sequential net(torch::nn::Linear(3, 8), norm, torch::nn::Tanh(), torch::nn::Linear(8, 8), norm,
                                torch::nn::Tanh(), torch::nn::Linear(8, 3));
      net->to(at::kDouble);
      return net;
    };
    auto sync = make(SyncBatchNorm1d(8));
    auto plain = make(torch::nn::BatchNorm1d(8));
    torch::optim::SGD sgd(sync->parameters(), 0.1);
    torch::optim::SGD reference(plain->parameters(), 0.1);
    auto [model, optimizer] = accelerator.prepare(sync, sgd);
    for (int step = 0; step < 4; ++step) {
      const auto x = batch.own(batch.whole);
      const auto forward = [&](const at::Tensor& rows) { return sync->forward(rows); };  // not known to have buffers
      const auto y = recomputes ? recompute(forward, x) : model(x);
      const auto scale = static_cast<double>(accelerator.num_processes());
      accelerator.backward((y * batch.own(batch.weights)).sum() * scale / batch.total);
      ((plain->forward(batch.whole) * batch.weights).sum() / batch.total).backward();
      optimizer.step();
      optimizer.zero_grad();
      reference.step();
      reference.zero_grad();
    }
    const auto expected = plain->named_parameters();
    for (const auto& item : sync->named_parameters()) CHECK(close(item.value(), expected[item.key()], at::kDouble));
    const auto buffers = plain->named_buffers();
    for (const auto& item : sync->named_buffers()) CHECK(close(item.value(), buffers[item.key()], at::kDouble));
  }
}

TEST_CASE("every rank computes the same statistics, bit for bit") {
  Accelerator accelerator({.ddp = {.broadcast_buffers = false}});
  const Batch batch(accelerator, {0, 3}, at::kFloat);
  SyncBatchNorm1d sync(3);
  auto model = accelerator.prepare(sync);
  model(batch.own(batch.whole));
  const auto all = accelerator.gather(sync->running_var.view({1, 3}));
  CHECK((all == all[0]).all().item<bool>());
  CHECK_FALSE(at::equal(sync->running_var, at::ones({3})));
}

TEST_CASE("one value per channel on all ranks together is an error on all ranks") {
  Accelerator accelerator;
  SyncBatchNorm1d sync(3);
  auto model = accelerator.prepare(sync);
  const auto x = at::ones({accelerator.is_main_process() ? 1 : 0, 3});
  if (accelerator.num_processes() == 1) {
    CHECK_THROWS(model(x));  // LibTorch's own message
  } else {
    CHECK_THROWS_WITH(model(x), ContainsSubstring("1 values a channel on all ranks together"));
  }
}

TEST_CASE("wrong dimensions and unsupported uses are refused") {
  Accelerator accelerator({.data = {.even_batches = false}});
  SyncBatchNorm2d sync(3);
  CHECK_THROWS_WITH(sync(at::ones({2, 3})), ContainsSubstring("SyncBatchNorm2d got an input of 2 dimensions"));
  if (accelerator.num_processes() > 1)
    CHECK_THROWS_WITH(sync(at::ones({2, 3, 1, 1})), ContainsSubstring("was not prepared and is used in training"));
  auto model = accelerator.prepare(sync);
  if (accelerator.num_processes() == 1) return;
  CHECK_THROWS_WITH(accelerator.join_uneven_inputs({model}), ContainsSubstring("SyncBatchNorm"));
  accelerator.free_memory();
  CHECK_THROWS_WITH(sync(at::ones({2, 3, 1, 1})), ContainsSubstring("after its Accelerator was destroyed"));
  sync->eval();
  CHECK(sync(at::ones({2, 3, 1, 1})).defined());
}
