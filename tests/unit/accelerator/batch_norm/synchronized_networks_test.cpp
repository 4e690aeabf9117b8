// Networks whose BatchNorm layers are synchronised, with all that surrounds a model.
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>

#include <fstream>
#include <hortator/models/pretrained.hpp>

#include "support/catch.hpp"
#include "unit/accelerator/training/joined_batch.hpp"

using namespace hortator;
using test::close;
using test::Folder;
using test::JoinedBatch;

namespace {

/// A network with norms as members of their own types, some within a Sequential, and one that keeps no tensors.
template <typename Norm1d, typename Norm2d>
struct NetworkImpl : torch::nn::Cloneable<NetworkImpl<Norm1d, Norm2d>> {
  NetworkImpl() { reset(); }
  void reset() override {
    at::manual_seed(6);
    convolution = this->register_module("convolution",
                                        torch::nn::Conv2d(torch::nn::Conv2dOptions(2, 4, 3).padding(1).bias(false)));
    norm = this->register_module("norm", Norm2d(4));
    bare =
        this->register_module("bare", Norm1d(torch::nn::BatchNormOptions(24).affine(false).track_running_stats(false)));
    layers = this->register_module("layers",
                                   torch::nn::Sequential(torch::nn::Linear(24, 7), Norm1d(7), torch::nn::Linear(7, 3)));
    this->to(at::kDouble);
  }
  at::Tensor forward(const at::Tensor& x) {
    return layers->forward(at::tanh(bare(at::tanh(norm(convolution(x))).flatten(1))));
  }
  torch::nn::Conv2d convolution = nullptr;
  Norm2d norm = nullptr;
  Norm1d bare = nullptr;
  torch::nn::Sequential layers = nullptr;
};

using Plain = NetworkImpl<torch::nn::BatchNorm1d, torch::nn::BatchNorm2d>;
using Sync = NetworkImpl<SyncBatchNorm1d, SyncBatchNorm2d>;

const std::vector<std::int64_t> input_shape = {0, 2, 3, 2};

/// A training whose loss is that of the joined batch, whatever the numbers of samples.
template <typename Network>
struct Training {
  explicit Training(const AcceleratorOptions& options, at::ScalarType type = at::kDouble) : accelerator(options) {
    network->to(type);
    synchronize_batch_norms(network);  // finds nothing in networks of SyncBatchNorm
    std::tie(model, optimizer) = [&] {
      auto [prepared, with] = accelerator.prepare(network, sgd);
      return std::tuple(std::optional(prepared), std::optional(with));
    }();
    batch.emplace(accelerator, input_shape, type);
    weights = at::linspace(-1, 2, batch->total * 3, at::kDouble).view({batch->total, 3}).to(type);
  }

  at::Tensor backward(int number) {
    const auto scale = static_cast<double>(accelerator.num_processes()) / static_cast<double>(batch->total);
    const auto loss = ((*model)(batch->own(batch->whole) + number) * batch->own(weights)).sum() * scale;
    accelerator.backward(loss);
    return loss;
  }
  void run(int begin, int end) {
    for (int number = begin; number < end; ++number) {
      backward(number);
      optimizer->step();
      optimizer->zero_grad();
    }
  }
  std::vector<at::Tensor> state() const {
    std::vector<at::Tensor> tensors;
    const at::NoGradGuard no_grad;
    for (const auto& item : network->named_parameters()) tensors.push_back(item.value().detach().clone());
    for (const auto& item : network->named_buffers())
      if (item.value().defined()) tensors.push_back(item.value().clone());
    return tensors;
  }

  Accelerator accelerator;
  std::shared_ptr<Network> network = std::make_shared<Network>();
  torch::optim::SGD sgd{network->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9)};
  std::optional<Model<std::shared_ptr<Network>>> model;
  std::optional<Optimizer> optimizer;
  std::optional<JoinedBatch> batch;
  at::Tensor weights;
};

/// Four steps on the joined batch, by this rank.
std::vector<at::Tensor> joined_training(const JoinedBatch& batch, const at::Tensor& weights) {
  auto network = std::make_shared<Plain>();
  torch::optim::SGD sgd(network->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  for (int number = 0; number < 4; ++number) {
    ((network->forward(batch.whole + number) * weights).sum() / batch.total).backward();
    sgd.step();
    sgd.zero_grad();
  }
  std::vector<at::Tensor> tensors;
  for (const auto& parameter : network->parameters()) tensors.push_back(parameter.detach().clone());
  for (const auto& item : network->named_buffers())
    if (item.value().defined()) tensors.push_back(item.value().clone());
  return tensors;
}

bool same_bits(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return at::equal(x, y); });
}

bool all_close(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return close(x, y, at::kDouble); });
}

std::vector<std::string> names_of(const torch::nn::Module& module) {
  auto names = module.named_parameters().keys();
  for (const auto& name : module.named_buffers().keys()) names.push_back(name);
  return names;
}

}  // namespace

TEST_CASE("at every stage of ZeRO, a network trains as on the joined batch, and as with SyncBatchNorm, bitwise") {
  for (const int stage : {0, 1, 2, 3}) {
    INFO("stage " << stage);
    const AcceleratorOptions options{.ddp = {.bucket_cap_mb = 1e-4}, .zero = {.stage = stage}};
    std::vector<at::Tensor> marked;
    {
      Training<Plain> training(options);
      CHECK(unsynchronized_batch_norms(training.network).empty());
      training.run(0, 4);
      marked = training.state();
      CHECK(all_close(marked, joined_training(*training.batch, training.weights)));
    }
    Training<Sync> training(options);
    training.run(0, 4);
    CHECK((training.accelerator.num_processes() == 1 || same_bits(marked, training.state())));
  }
}

TEST_CASE("parameters in a file, and moments in it, change nothing") {
  Training<Plain> in_memory({});
  in_memory.run(0, 4);
  const auto expected = in_memory.state();
  const Folder folder(in_memory.accelerator, "marked_offload");
  std::filesystem::create_directories(folder.path());
  Training<Plain> training({.zero = {.stage = 3, .offload_parameters = folder.path()}});
  training.run(0, 4);
  CHECK(all_close(training.state(), expected));
}

TEST_CASE("mixed precision, and a model of 16 bits, give the bits of SyncBatchNorm") {
  const auto train = [](auto& training) {
    training.run(0, 4);
    return training.state();
  };
  for (const auto precision : {Precision::bf16, Precision::fp16}) {
    Training<Plain> marked({.mixed_precision = precision}, at::kFloat);
    const auto state = train(marked);
    Training<Sync> sync({.mixed_precision = precision}, at::kFloat);
    CHECK(same_bits(state, train(sync)));
  }
  Training<Plain> marked({}, at::kBFloat16);
  const auto state = train(marked);
  Training<Sync> sync({}, at::kBFloat16);
  CHECK(same_bits(state, train(sync)));
}

TEST_CASE("checkpoints and weights of marked networks are those of plain ones, and resume bitwise") {
  const Folder folder(State(), "marked_checkpoint");
  std::vector<at::Tensor> expected;
  {
    Training<Plain> whole({.project = {.dir = folder.path()}});
    CHECK(names_of(*whole.network) == names_of(Plain()));
    whole.run(0, 2);
    whole.accelerator.save_state();
    whole.accelerator.save_model(*whole.model, folder.path() / "weights");
    whole.run(2, 4);
    expected = whole.state();
  }
  {
    Training<Plain> resumed({.project = {.dir = folder.path()}});
    resumed.accelerator.load_state();
    resumed.run(2, 4);
    CHECK(same_bits(resumed.state(), expected));
  }
  {
    Training<Sync> others({.project = {.dir = folder.path()}});
    others.accelerator.load_state();
    others.run(2, 4);
    CHECK(all_close(others.state(), expected));
  }
  Training<Plain> loaded({});
  loaded.accelerator.load_checkpoint_in_model(*loaded.model, folder.path() / "weights");
  Training<Plain> as_saved({.project = {.dir = folder.path()}});
  as_saved.accelerator.load_state();
  CHECK(same_bits(loaded.state(), as_saved.state()));
  loaded.backward(2);  // still marked
}

TEST_CASE("layers stay marked when the model's type changes, and when LibTorch loads it") {
  Accelerator accelerator;
  std::stringstream file;
  const Plain plain;
  {
    torch::serialize::OutputArchive saved;
    plain.save(saved);
    saved.save_to(file);
  }
  auto network = std::make_shared<Plain>();
  synchronize_batch_norms(network);
  network->to(at::kFloat);
  network->to(at::kDouble);
  torch::serialize::InputArchive archive;
  archive.load_from(file);
  network->load(archive);
  CHECK(unsynchronized_batch_norms(network).empty());
  auto model = accelerator.prepare(network);
  const JoinedBatch batch(accelerator, input_shape, at::kDouble);
  CHECK(close(model(batch.own(batch.whole)), batch.own(Plain().forward(batch.whole)), at::kDouble));
}

TEST_CASE("a clone has plain layers, which can be marked as well") {
  Accelerator accelerator;
  const JoinedBatch batch(accelerator, input_shape, at::kDouble);
  auto network = std::make_shared<Plain>();
  synchronize_batch_norms(network);
  auto copy = std::dynamic_pointer_cast<Plain>(network->clone());
  CHECK(unsynchronized_batch_norms(copy) == std::vector<std::string>{"norm", "bare", "layers.1"});
  for (int call = 0; call <= accelerator.process_index(); ++call)  // plain layers wait for no other rank
    CHECK(at::equal(copy->forward(batch.own(batch.whole)), Plain().forward(batch.own(batch.whole))));
  CHECK(synchronize_batch_norms(copy) == 3);
  CHECK(synchronize_batch_norms(copy) == 3);
  auto model = accelerator.prepare(copy);
  CHECK(close(model(batch.own(batch.whole)), batch.own(Plain().forward(batch.whole)), at::kDouble));
}

TEST_CASE("recomputed parts of a marked network move statistics once, and give the same gradients") {
  const auto gradients = [](bool recomputes) {
    Training<Plain> training({});
    auto& network = *training.network;
    const auto forward = [&](const at::Tensor& rows) { return network.forward(rows); };  // not known to have buffers
    const auto x = training.batch->own(training.batch->whole);
    const auto y = recomputes ? recompute(forward, x) : network.forward(x);
    training.accelerator.backward((y * training.batch->own(training.weights)).sum());
    auto tensors = std::vector{network.norm->running_mean.clone(), network.norm->running_var.clone()};
    for (const auto& parameter : network.parameters()) tensors.push_back(parameter.grad().clone());
    return tensors;
  };
  CHECK(same_bits(gradients(true), gradients(false)));
}

TEST_CASE("averaged weights of a marked network are put in its place and taken out again") {
  Training<Plain> training({});
  Ema ema(training.accelerator, *training.model, {.decay = 0.5});
  for (int number = 0; number < 3; ++number) {
    training.run(number, number + 1);
    ema.update();
  }
  const auto before = training.state();
  {
    const auto averaged = ema.use();
    training.model->eval();
    (*training.model)(training.batch->own(training.batch->whole));
  }
  training.model->train();
  CHECK(same_bits(training.state(), before));
  training.run(3, 4);
}

TEST_CASE("a ResNet of hortator::models trains as on the joined batch") {
  Accelerator accelerator;
  const Folder folder(accelerator, "marked_resnet");
  if (accelerator.is_main_process()) {
    std::filesystem::create_directories(folder.path());
    std::ofstream(folder.path() / "config.json")
        << R"({"architectures": ["ResNetForImageClassification"], "model_type": "resnet", "num_channels": 2,
               "embedding_size": 4, "hidden_sizes": [4, 8], "depths": [1, 1], "layer_type": "basic",
               "hidden_act": "relu"})";
  }
  accelerator.wait_for_everyone();
  const auto make = [&] {
    at::manual_seed(8);
    auto model = models::from_config(folder.path(), {.num_labels = 3});
    model->to(at::kDouble);
    model->train();
    return model;
  };
  auto net = make();
  auto plain = make();
  CHECK(unsynchronized_batch_norms(net).size() == 6);
  CHECK(synchronize_batch_norms(net) == 6);
  CHECK(unsynchronized_batch_norms(net).empty());
  auto model = accelerator.prepare(net);
  const JoinedBatch batch(accelerator, {0, 2, 16, 16}, at::kDouble);
  const auto weights = at::linspace(-1, 2, batch.total * 3, at::kDouble).view({batch.total, 3});
  const auto own = model(models::ModelInputs{.pixel_values = batch.own(batch.whole)}).logits;
  const auto all = plain->forward(models::ModelInputs{.pixel_values = batch.whole}).logits;
  CHECK(close(own, batch.own(all), at::kDouble));
  accelerator.backward((own * batch.own(weights)).sum() * accelerator.num_processes());
  (all * weights).sum().backward();
  const auto expected = plain->named_parameters();
  for (const auto& item : net->named_parameters())
    CHECK(at::allclose(item.value().grad(), expected[item.key()].grad(), 1e-7, 1e-7));
  for (const auto& item : net->named_buffers())
    CHECK(close(item.value(), plain->named_buffers()[item.key()], at::kDouble));
}
