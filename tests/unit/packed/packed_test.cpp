// Weights in 8 and 4 bits: their bytes against bitsandbytes, products against unpacked ones, and whole models.
#include <ATen/ATen.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include <cmath>
#include <cstdlib>
#include <hortator/bigmodel/offload.hpp>
#include <hortator/bigmodel/safetensors_file.hpp>
#include <hortator/lora.hpp>
#include <hortator/models/pretrained.hpp>
#include <hortator/nn/linear_cross_entropy.hpp>
#include <hortator/quantise.hpp>
#include <hortator/training/autocast.hpp>
#include <map>

#include "interception/weight_operators.hpp"
#include "packed/packed_products.hpp"
#include "packed/packed_rows.hpp"
#include "packed/packing.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

using namespace hortator;
using Catch::Matchers::Contains;
using packed::PackedLayout;

namespace {

SafetensorsFile packed_case() {
  const auto* other = std::getenv("HORTATOR_PACKED_CASE");
  return SafetensorsFile(other != nullptr ? other : PACKED_CASE);
}

PackedLayout layout_of(const at::Tensor& weight, WeightFormat format, std::int64_t group = 64) {
  return {.format = format, .outputs = weight.size(0), .inputs = weight.size(1), .group = group};
}

constexpr WeightFormat every_format[] = {WeightFormat::int8, WeightFormat::int4, WeightFormat::nf4,
                                         WeightFormat::int8_groups};

/// The largest step between neighbouring values, relative to the largest weight of a group.
double largest_error(WeightFormat format) {
  const bool is_int8 = format == WeightFormat::int8 || format == WeightFormat::int8_groups;
  return is_int8 ? 0.5 / 127 : format == WeightFormat::int4 ? 1.1 / 15 : 0.16;
}

struct TwoLayersImpl : torch::nn::Module {
  TwoLayersImpl() {
    torch::manual_seed(2);
    tokens = register_module("tokens", torch::nn::Embedding(9, 64));
    up = register_module("up", torch::nn::Linear(64, 96));
    down = register_module("down", torch::nn::Linear(torch::nn::LinearOptions(96, 10).bias(false)));
  }
  at::Tensor forward(const at::Tensor& ids) { return down(at::gelu(up(tokens(ids)))); }
  torch::nn::Embedding tokens{nullptr};
  torch::nn::Linear up{nullptr}, down{nullptr};
};
TORCH_MODULE(TwoLayers);

/// The net with the values that packed weights have.
TwoLayers with_rounded_weights(const QuantiseOptions& options) {
  TwoLayers net;
  const at::NoGradGuard no_grad;
  for (auto* layer : {&net->up, &net->down}) {
    auto& weight = (*layer)->weight;
    const auto layout = layout_of(weight, options.format, options.group);
    weight.copy_(packed::unpacked_rows(layout, packed::pack(weight.detach().contiguous(), layout), 0, layout.outputs));
  }
  return net;
}

/// The same random values for the adapters of both.
void randomise_adapters(TwoLayers& one, TwoLayers& other) {
  const at::NoGradGuard no_grad;
  const auto others = other->named_parameters();
  for (const auto& item : one->named_parameters())
    if (item.key().find("lora_") != std::string::npos) others[item.key()].copy_(item.value().normal_(0, 0.2));
}

}  // namespace

TEST_CASE("int8 and nf4 have the bytes, scales and values of bitsandbytes") {
  const auto file = packed_case();
  std::size_t compared = 0;
  for (const auto& name : file.names()) {
    if (!name.ends_with(".weight")) continue;
    const auto key = name.substr(0, name.size() - std::string(".weight").size());
    const auto group = std::stoll(key.substr(key.find('.') + 1));
    const auto weight = file.get(name);
    for (const auto& [format, text] : {std::pair(WeightFormat::int8, "int8"), {WeightFormat::nf4, "nf4"}}) {
      if (!file.contains(key + "." + text + ".numbers")) continue;
      INFO(key << " " << text);
      const auto layout = layout_of(weight, format, group);
      const auto bytes = packed::pack(weight, layout).flatten();
      const auto numbers = bytes.narrow(0, layout.scale_bytes(), layout.number_bytes());
      CHECK(at::equal(numbers, file.get(key + "." + text + ".numbers").flatten().view(at::kByte)));
      const auto scales = bytes.narrow(0, 0, layout.scale_bytes()).clone().view(at::kFloat);
      CHECK(at::equal(scales, file.get(key + "." + text + ".scales").flatten()));
      CHECK(
          at::equal(packed::unpacked_rows(layout, bytes, 0, layout.outputs), file.get(key + "." + text + ".unpacked")));
      ++compared;
    }
  }
  CHECK(compared > 10);
}

TEST_CASE("packed weights are near the weights, for every shape and group") {
  torch::manual_seed(3);
  for (const auto format : every_format) {
    for (const auto& [rows, columns, group] : std::vector<std::tuple<int, int, int>>{
             {1, 1, 16}, {3, 7, 16}, {5, 64, 64}, {4, 65, 64}, {9, 96, 32}, {2, 250, 128}, {17, 192, 64}}) {
      INFO(static_cast<int>(format) << ": " << rows << " x " << columns << " by " << group);
      const auto weight = at::randn({rows, columns});
      const auto layout = layout_of(weight, format, group);
      const auto bytes = packed::pack(weight, layout);
      CHECK(bytes.numel() == layout.bytes());
      const auto unpacked = packed::unpacked_rows(layout, bytes, 0, rows);
      const auto bound = largest_error(format) * weight.abs().max().item<double>() * 2;
      CHECK((unpacked - weight).abs().max().item<double>() <= bound);
      if (rows > 2) CHECK(at::equal(packed::unpacked_rows(layout, bytes, 1, 3), unpacked.narrow(0, 1, 2)));
    }
  }
}

TEST_CASE("int4 has smaller errors than rounding between the smallest and the largest weight, and keeps exact values") {
  torch::manual_seed(8);
  const auto half = [](const at::Tensor& x) { return x.to(at::kHalf).to(at::kFloat); };
  for (const std::int64_t group : {32, 64, 256}) {
    INFO(group);
    const auto weight = at::randn({16, 512}), rows = weight.view({-1, group});
    const auto low = half(rows.amin(1, true)), scale = half((rows.amax(1, true) - low) / 15);
    const auto numbers = ((rows - low) / scale).round().clamp(0, 15);
    const auto rounded = (numbers * scale + low).view_as(weight);
    const auto layout = layout_of(weight, WeightFormat::int4, group);
    const auto unpacked = [&](const at::Tensor& values) {
      return packed::unpacked_rows(layout, packed::pack(values, layout), 0, layout.outputs);
    };
    CHECK((unpacked(weight) - weight).norm().item<double>() < 0.95 * (rounded - weight).norm().item<double>());
    CHECK(at::equal(unpacked(rounded), rounded));
  }
}

TEST_CASE("products with packed weights are those with their values, and so are gradients") {
  torch::manual_seed(4);
  for (const auto format : every_format) {
    for (const auto& [outputs, inputs, group] :
         std::vector<std::tuple<int, int, int>>{{5, 64, 64}, {33, 192, 64}, {7, 50, 64}, {40, 96, 32}, {3, 1, 16}}) {
      const auto weight = at::randn({outputs, inputs});
      const auto layout = layout_of(weight, format, group);
      const auto bytes = packed::pack(weight, layout);
      const auto values = packed::unpacked_rows(layout, bytes, 0, outputs);
      for (const std::int64_t rows : {1, 2, 3, 4, 5, 40}) {
        INFO(static_cast<int>(format) << ": " << outputs << " x " << inputs << ", " << rows << " rows");
        auto x = at::randn({rows, inputs}).requires_grad_(), same = x.detach().clone().requires_grad_();
        const auto found = packed::product(layout, x, bytes), expected = at::linear(same, values);
        CHECK((found - expected).norm().item<double>() <= 1e-4 * expected.norm().item<double>());
        const auto by_result = at::randn_like(expected);
        (found * by_result).sum().backward();
        (expected * by_result).sum().backward();
        CHECK(at::allclose(x.grad(), same.grad(), 1e-4, 1e-4));
      }
    }
  }
}

TEST_CASE("products with groups that only files have, and with tiny inputs, are those with their values") {
  torch::manual_seed(5);
  for (const auto format : {WeightFormat::int4, WeightFormat::nf4, WeightFormat::int8_groups}) {
    for (const std::int64_t group : {2, 8, 24, 48, 96}) {
      const auto weight = at::randn({5, 192});
      const auto layout = layout_of(weight, format, group);
      const auto bytes = packed::pack(weight, layout);
      const auto values = packed::unpacked_rows(layout, bytes, 0, 5);
      for (const std::int64_t rows : {1, 3}) {
        INFO(static_cast<int>(format) << " by " << group << ", " << rows << " rows");
        const auto x = at::randn({rows, 192});
        const auto expected = at::linear(x, values), found = packed::product(layout, x, bytes);
        CHECK((found - expected).norm().item<double>() <= 1e-4 * expected.norm().item<double>());
      }
      const auto tiny = packed::product(layout, at::full({1, 192}, 1e-39F), bytes);
      CHECK(tiny.abs().max().item<double>() < 1e-35);
    }
  }
}

TEST_CASE("products without unpacking hold for all lengths of rows, and for numbers that are not finite") {
  torch::manual_seed(6);
  for (const auto format : every_format) {
    for (const std::int64_t group : {32, 64, 128, 256}) {
      for (const auto inputs : {group, 3 * group, 18 * group, 19 * group}) {  // parts of blocks; more groups than lanes
        const auto weight = at::randn({6, inputs});
        const auto layout = layout_of(weight, format, group);
        const auto bytes = packed::pack(weight, layout);
        const auto values = packed::unpacked_rows(layout, bytes, 0, 6);
        const at::NoGradGuard no_grad;
        for (const std::int64_t rows : {1, 2, 3, 4}) {
          INFO(static_cast<int>(format) << " by " << group << ", " << inputs << " inputs, " << rows << " rows");
          const auto x = at::randn({rows, inputs});
          const auto expected = at::linear(x, values);
          CHECK((packed::product(layout, x, bytes) - expected).norm().item<double>() <=
                1e-4 * expected.norm().item<double>());
          for (const double bad : {std::nan(""), static_cast<double>(INFINITY)}) {
            auto spoilt = x.clone();
            spoilt[rows - 1][inputs / 2] = bad;
            const auto found = packed::product(layout, spoilt, bytes);
            CHECK(!found[rows - 1].isfinite().any().item<bool>());
            if (rows > 1)
              CHECK((found[0] - expected[0]).norm().item<double>() <= 1e-4 * expected.norm().item<double>());
          }
        }
      }
    }
  }
}

TEST_CASE("a quantised module computes with the packed values, also offloaded, in 16 bits and with adapters") {
  const auto ids = at::arange(8).view({2, 4});
  const test::OwnFolder folder("packed-module");
  for (const auto format : every_format) {
    TwoLayers net;
    const auto report = quantise(net, {.format = format, .group = 32});
    CHECK(report.layers == std::vector<std::string>{"up", "down"});
    CHECK(report.bytes_after < report.bytes_before / (largest_error(format) < 0.01 ? 3.2 : 6));
    CHECK(net->up->weight.scalar_type() == at::kByte);
    CHECK(!net->up->weight.requires_grad());
    auto expected = with_rounded_weights({.format = format, .group = 32});
    CHECK(at::allclose(net(ids), expected(ids), 1e-4, 1e-5));
    {
      const Autocast cast(at::kCPU, at::kBFloat16);
      CHECK(net(ids).scalar_type() == at::kBFloat16);
      CHECK(at::allclose(net(ids).to(at::kFloat), expected(ids).to(at::kFloat), 0.05, 0.05));
    }
    lora(net, {.rank = 2, .targets = {"up", "down"}});
    lora(expected, {.rank = 2, .targets = {"up", "down"}});
    randomise_adapters(net, expected);
    CHECK(at::allclose(net(ids), expected(ids), 1e-4, 1e-5));
    net(ids).square().sum().backward();
    expected(ids).square().sum().backward();
    const auto others = expected->named_parameters();
    for (const auto& item : net->named_parameters()) {
      if (!item.value().requires_grad()) continue;
      INFO(item.key());
      CHECK(at::allclose(item.value().grad(), others[item.key()].grad(), 1e-4, 1e-4));
    }
    CHECK_THROWS_WITH(merge_adapters(net), Contains("packed by quantise()"));
    const auto before = net(ids).detach();
    const auto offload = disk_offload(net, folder.path);
    const at::NoGradGuard no_grad;
    CHECK(at::equal(net(ids), before));
  }
}

TEST_CASE(
    "the loss of scores with a packed weight is that with its values, for some rows at a time and with adapters") {
  torch::manual_seed(7);
  for (const auto format : every_format) {
    for (const bool is_adapted : {false, true}) {
      INFO(static_cast<int>(format) << (is_adapted ? ", with an adapter" : ""));
      TwoLayers net;
      quantise(net, {.format = format, .group = 32});
      auto expected = with_rounded_weights({.format = format, .group = 32});
      if (is_adapted) {
        lora(net, {.rank = 2, .targets = {"up"}});
        lora(expected, {.rank = 2, .targets = {"up"}});
        randomise_adapters(net, expected);
      }
      auto x = at::randn({7, 64}).requires_grad_(), same = x.detach().clone().requires_grad_();
      const auto target = at::tensor({3, 95, -100, 0, 64, -100, 17}, at::kLong);
      const auto loss = nn::linear_cross_entropy(x, net->up->weight, target,
                                                 {.bias = net->up->bias, .label_smoothing = 0.1, .rows_at_once = 3});
      const auto wanted = at::cross_entropy_loss(at::linear(same, expected->up->weight, expected->up->bias), target, {},
                                                 at::Reduction::Mean, -100, 0.1);
      CHECK(at::allclose(loss, wanted, 1e-5, 1e-6));
      loss.backward();
      wanted.backward();
      CHECK(at::allclose(x.grad(), same.grad(), 1e-4, 1e-6));
      if (!is_adapted) CHECK(at::allclose(net->up->bias.grad(), expected->up->bias.grad(), 1e-4, 1e-6));
    }
  }
  TwoLayers net;
  quantise(net);
  CHECK_THROWS_WITH(nn::linear_cross_entropy(at::ones({2, 63}), net->up->weight, at::zeros({2}, at::kLong)),
                    Contains("got hidden states [2, 63], a weight [96, 64]"));
}

TEST_CASE("compute_dtype is the type of products, also under autocast and for few rows") {
  TwoLayers net;
  const auto plain_weight = net->up->weight.detach().clone();
  quantise(net, {.format = WeightFormat::int8, .compute_dtype = at::kFloat});
  const at::NoGradGuard no_grad;
  const auto layout = layout_of(plain_weight, WeightFormat::int8);
  const auto unpacked = packed::unpacked_rows(layout, packed::pack(plain_weight, layout), 0, layout.outputs);
  const auto x = at::randn({8, 64}).to(at::kBFloat16);
  const auto expected = at::linear(x.to(at::kFloat), unpacked, net->up->bias).to(at::kBFloat16);
  const Autocast cast(at::kCPU, at::kBFloat16);
  const auto all = net->up(x);
  CHECK(at::allclose(all.to(at::kFloat), expected.to(at::kFloat), 1e-2, 1e-2));
  CHECK(at::allclose(net->up(x.slice(0, 0, 1)), all.slice(0, 0, 1), 1e-2, 1e-2));
}

TEST_CASE("packed weights end with their module") {
  at::Tensor weight;
  {
    TwoLayers net;
    quantise(net);
    CHECK(interception::is_packed(net->up->weight));
    CHECK(net->up->weight.use_count() == 2);  // its member, and its list of parameters
  }
  interception::refresh_weights();
  TwoLayers other;
  CHECK(!interception::is_packed(other->up->weight));
}

TEST_CASE("what cannot be quantised, and what a quantised model cannot do, is an error") {
  TwoLayers net;
  CHECK_THROWS_WITH(quantise(net, {.group = 48}), Contains("a power of two from 16, got 48"));
  CHECK_THROWS_WITH(quantise(net, {.skip = {"head"}}), Contains("no layer 'head'"));
  CHECK_THROWS_WITH(quantise(net, {.skip = {"up", "down"}}), Contains("no linear layer"));
  CHECK_THROWS_WITH(parse_weight_format("fp4"), Contains("one of int8, int4, nf4, int8_groups"));
  quantise(net, {.skip = {"up"}});
  CHECK(net->up->weight.scalar_type() == at::kFloat);
  CHECK_THROWS_WITH(quantise(net), Contains("packed already"));
  CHECK_THROWS_WITH(lora(net, {.targets = {"down"}, .use_dora = true}), Contains("use_dora"));
  CHECK_THROWS_WITH(at::mm(at::ones({2, 10}), net->down->weight),
                    Contains("does not read the matrix as the layer does"));
  TwoLayers plain;
  CHECK_THROWS_WITH(quantise(plain, {.scoring = WeightFormat::int8}), Contains("no layer that scores tokens"));
  CHECK(plain->up->weight.scalar_type() == at::kFloat);
  net->to(at::kBFloat16);
  interception::refresh_weights();
  CHECK_THROWS_WITH(net->down(at::ones({2, 96}, at::kBFloat16)),
                    Contains("'down.weight' has become") && Contains("before quantise()"));
}

TEST_CASE("int4 refuses weights that its scales of 16 bits cannot have, and layers without weights stay") {
  for (const double size : {7e4, 1e-6}) {
    INFO(size);
    for (const auto format : every_format) {
      TwoLayers net;
      {
        const at::NoGradGuard no_grad;
        net->up->weight.mul_(size / net->up->weight.abs().max());
      }
      if (format == WeightFormat::int4) {
        CHECK_THROWS_WITH(quantise(net, {.format = format}), Contains("'up.weight'") && Contains("int8_groups or nf4"));
        continue;
      }
      const auto expected = at::linear(at::ones({1, 64}), net->up->weight).detach();
      quantise(net, {.format = format});
      const auto found = net->up(at::ones({1, 64})) - net->up->bias;
      CHECK((found - expected).abs().max().item<double>() < 5 * size);
      CHECK((found - expected).norm().item<double>() < 0.2 * expected.norm().item<double>() + 1e-7);
    }
  }
  TwoLayers zeros;
  {
    const at::NoGradGuard no_grad;
    zeros->up->weight.zero_();
  }
  quantise(zeros, {.format = WeightFormat::int4});
  CHECK(at::equal(zeros->up(at::ones({1, 64})), zeros->up->bias.unsqueeze(0)));
  torch::nn::Sequential none(torch::nn::Linear(64, 16), torch::nn::Linear(16, 0));
  CHECK(quantise(none).layers == std::vector<std::string>{"0"});
  CHECK(none->forward(at::ones({2, 64})).sizes() == at::IntArrayRef{2, 0});
}
