#include <ATen/ATen.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/modules/rnn.h>

#include <fstream>
#include <hortator/bigmodel/big_models.hpp>
#include <hortator/error.hpp>

#include "interception/storage_memory.hpp"
#include "support/catch.hpp"

using namespace hortator;

namespace {

constexpr std::int64_t wide = 1024;  // a square of floats takes 4 MiB

std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t pages = 0, resident = 0;
  statm >> pages >> resident;
  return resident * 4096;
}

struct SmallNetImpl : torch::nn::Module {
  SmallNetImpl() {
    register_module("linear", linear);
    register_module("embedding", embedding);
    register_module("norm", norm);
    torch::nn::init::normal_(linear->weight, 0, 0.02);
    table = register_buffer("table", at::outer(at::arange(wide, at::kFloat), at::ones({wide})).sin());
    mask = register_buffer("mask", at::ones({2 * wide, wide}).tril_());
    literal = register_buffer("literal", at::tensor({1.0F, 2.5F, -3.0F}));
    tied = register_parameter("tied", linear->weight);
  }
  torch::nn::Linear linear{wide, wide};
  torch::nn::Embedding embedding{torch::nn::EmbeddingOptions(4 * wide, wide).padding_idx(3)};
  torch::nn::LayerNorm norm{torch::nn::LayerNormOptions({wide})};
  at::Tensor table, mask, literal, tied;
};
TORCH_MODULE(SmallNet);

}  // namespace

TEST_CASE("parameters use no memory and keep shapes, types and ties; buffers have their values") {
  const auto before = resident_bytes();
  const auto net = init_empty_weights([] { return SmallNet(); });
  CHECK(resident_bytes() < before + (std::size_t{24} << 20));  // buffers of 12 MiB, parameters of 20
  const auto eager = SmallNet();
  for (const auto& item : eager->named_parameters()) {
    INFO(item.key());
    const auto own = net->named_parameters()[item.key()];
    CHECK(is_empty_weight(own));
    CHECK_FALSE(is_empty_weight(item.value()));
    CHECK(own.sizes() == item.value().sizes());
    CHECK(own.strides() == item.value().strides());
    CHECK(own.scalar_type() == item.value().scalar_type());
    CHECK(own.requires_grad());
    CHECK(own.is_leaf());
    CHECK(own.device() == item.value().device());
  }
  CHECK(net->tied.is_same(net->linear->weight));
  CHECK(at::equal(net->table, eager->table));
  CHECK(at::equal(net->mask, eager->mask));
  CHECK(at::equal(net->literal, eager->literal));
}

TEST_CASE("a model much larger than memory can be constructed and planned") {
  const auto before = resident_bytes();
  const auto net = init_empty_weights([] {
    torch::nn::Sequential all;
    for (int i = 0; i < 64; ++i) all->push_back(torch::nn::Linear(8192, 8192));  // 16 GiB
    return all;
  });
  CHECK(resident_bytes() < before + (std::size_t{64} << 20));
  CHECK(compute_module_sizes(*net).at("") == 64.0 * (8192.0 * 8192 + 8192) * 4);
  const auto map = infer_auto_device_map(*net, {.max_memory = {{DevicePlacement::cpu(), 0x1p30}}});
  CHECK(map.at("0") == DevicePlacement::cpu());
  CHECK(map.at("63") == DevicePlacement::disk());
}

TEST_CASE("reading an empty parameter throws with the reason") {
  const auto net = init_empty_weights([] { return torch::nn::Linear(wide, wide); });
  if constexpr (interception::AccessCanBeForbidden<c10::StorageImpl>) {
    CHECK_THROWS_WITH(net->weight.data_ptr(), ContainsSubstring("init_empty_weights"));
    CHECK_THROWS_WITH(net->bias.data_ptr<float>(), ContainsSubstring("init_empty_weights"));
  } else {  // the reason is LibTorch's own
    CHECK_THROWS_WITH(net->bias.data_ptr<float>(), ContainsSubstring("not allocated"));
  }
}

TEST_CASE("set_data gives values, and the module computes with them") {
  at::manual_seed(3);
  torch::nn::Linear eager(wide, wide);
  auto net = init_empty_weights([] { return torch::nn::Linear(wide, wide); });
  net->weight.set_data(eager->weight.detach());
  net->bias.set_data(eager->bias.detach());
  CHECK_FALSE(is_empty_weight(net->weight));
  const auto x = at::randn({2, wide});
  CHECK(at::equal(net(x), eager->forward(x)));
}

TEST_CASE("a constructor that reads its parameters gets their values") {
  auto seen = at::Tensor();
  const auto make = [&] {
    torch::nn::Linear linear(wide, wide);
    const at::NoGradGuard no_grad;
    linear->weight.fill_(0.5).mul_(4);
    seen = linear->weight.sum();
    torch::nn::init::constant_(linear->bias, linear->weight[0][0].item<double>());
    return linear;
  };
  const auto net = init_empty_weights(make);
  CHECK(seen.item<double>() == 2.0 * wide * wide);
  CHECK(is_empty_weight(net->weight));
}

TEST_CASE("other types of layers are constructed empty too") {
  const auto net = init_empty_weights([] { return torch::nn::LSTM(torch::nn::LSTMOptions(wide, wide).num_layers(2)); });
  for (const auto& parameter : net->parameters()) CHECK(is_empty_weight(parameter));
  const auto orthogonal = init_empty_weights([] {
    torch::nn::Linear linear(512, 512);
    torch::nn::init::orthogonal_(linear->weight);
    return linear;
  });
  CHECK(is_empty_weight(orthogonal->weight));
}

TEST_CASE("include_buffers leaves buffers empty too") {
  const auto net = init_empty_weights([] { return SmallNet(); }, {.include_buffers = true});
  CHECK(is_empty_weight(net->table));
  CHECK(is_empty_weight(net->literal));
}

TEST_CASE("the guard ends with the construction, also on an exception, and may be nested") {
  CHECK_THROWS_WITH(init_empty_weights([]() -> torch::nn::Linear { throw Error({.what = "no such net"}); }),
                    ContainsSubstring("no such net"));
  CHECK(at::ones({wide, wide}).sum().item<double>() == wide * wide);
  CHECK_FALSE(is_empty_weight(at::empty({wide, wide})));
  const auto net = init_empty_weights([] { return init_empty_weights([] { return torch::nn::Linear(2, 2); }); });
  CHECK(is_empty_weight(net->weight));
}

TEST_CASE("a tensor that is neither parameter nor buffer has its values when it is used") {
  at::Tensor kept;
  const auto net = init_empty_weights([&] {
    kept = at::ones({wide, wide});
    return torch::nn::Linear(2, 2);
  });
  CHECK(is_empty_weight(kept));
  CHECK(kept.sum().item<double>() == wide * wide);
}

TEST_CASE("random numbers are drawn only for tensors that keep their values") {
  at::manual_seed(4);
  const auto noise = at::randn({wide, wide});
  at::manual_seed(4);
  const auto net = init_empty_weights([&] {
    torch::nn::Linear linear(wide, wide);
    linear->register_buffer("noise", at::randn({wide, wide}));
    return linear;
  });
  CHECK(is_empty_weight(net->weight));
  CHECK(at::equal(net->named_buffers()["noise"], noise));
}
