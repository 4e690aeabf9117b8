#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <c10/core/InferenceMode.h>
#include <torch/autograd.h>
#include <torch/nn.h>
#include <torch/script.h>

#include <sstream>

#include "module_case.hpp"

namespace hortator::testing {
namespace {

namespace nn = torch::nn;

Subject of(const at::Tensor& weight, std::function<at::Tensor()> forward) {
  return {.tensors = {{.name = "weight", .tensor = weight}}, .forward = std::move(forward)};
}

class Bfloat16 {
 public:
  explicit Bfloat16(bool cache) {
    at::autocast::set_autocast_enabled(at::kCPU, true);
    at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
    at::autocast::set_autocast_cache_enabled(cache);
    at::autocast::increment_nesting();
  }
  ~Bfloat16() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, false);
    at::autocast::set_autocast_cache_enabled(true);
  }
  Bfloat16(const Bfloat16&) = delete;
  Bfloat16& operator=(const Bfloat16&) = delete;
};

}  // namespace

TEST_CASE("Operators on parameters themselves work on paged ones", "[modules]") {
  check_paged("cat and lists", [] {
    const auto w = input({3, 4});
    return of(w, [w, x = input({3, 4})] { return at::cat({x, w, at::stack({w, w}).sum(0)}); });
  });
  check_paged("einsum", [] {
    const auto w = input({3, 4});
    return of(w, [w, x = input({5, 3})] { return at::einsum("bi,ij->bj", {x, w}); });
  });
  check_paged("views", [] {
    const auto w = input({4, 6});
    return of(w, [w, x = input({5, 3})] { return at::matmul(x, w.t().narrow(0, 1, 3)) + w.select(0, 2).sum(); });
  });
  check_paged("chunks", [] {
    const auto w = input({6, 4});
    return of(w, [w, x = input({5, 4})] {
      const auto parts = w.chunk(3);
      return at::linear(x, parts[0]) * at::linear(x, parts[1]) + at::linear(x, parts[2]);
    });
  });
  check_paged("indexing", [] {
    const auto w = input({6, 4});
    return of(w, [w] { return w.index({torch::tensor({1, 3}), at::indexing::Slice(1, 3)}) * w[5][0]; });
  });
  check_paged("reshaped copies, types, devices", [] {
    const auto w = input({6, 4});
    return of(w, [w] { return w.t().reshape({24}).to(at::kDouble).to(at::kFloat).contiguous().clone(); });
  });
  check_paged("weight norm", [] {
    const auto w = input({6, 4});
    return of(w, [w, g = input({6, 1})] { return at::_weight_norm(w, g, 0); });
  });
}

TEST_CASE("Double backward works on paged parameters", "[modules]") {
  check_paged("a penalty on gradients", [] {
    nn::Sequential net(nn::Linear(6, 5), nn::Tanh(), nn::Linear(5, 1));
    return subject(net, [net, x = input({3, 6})]() mutable {
      const auto out = net->forward(x);
      const auto gradient = torch::autograd::grad({out.sum()}, {x}, {}, true, true)[0];
      return gradient.norm(2, 1) + out.squeeze(1);
    });
  });
  check_paged("the graph kept for a second backward", [] {
    nn::Sequential net(nn::Linear(6, 5), nn::Tanh(), nn::Linear(5, 1));
    return subject(net, [net, x = input({3, 6})]() mutable {
      const auto out = net->forward(x);
      out.sum().backward({}, true);
      return out;
    });
  });
}

TEST_CASE("Modes work on paged parameters", "[modules]") {
  for (const bool cache : {true, false}) {
    check_paged("autocast", [=] {
      nn::Sequential net(nn::Linear(6, 6), nn::ReLU(), nn::Linear(6, 6));
      return subject(net, [=, x = input({3, 6})]() mutable {
        const Bfloat16 mixed(cache);
        return net->forward(net->forward(x).to(at::kFloat)).to(at::kFloat);
      });
    });
  }
  check_paged("InferenceMode", [] {
    nn::Sequential net(nn::Linear(6, 6), nn::ReLU(), nn::Linear(6, 6));
    return subject(net, [net, x = at::randn({3, 6})]() mutable {
      const c10::InferenceMode inference;
      return net->forward(x);
    });
  });
}

TEST_CASE("TorchScript works on paged parameters, in backward as well", "[modules]") {
  check_paged("conv, batch_norm, lstm", [] {
    torch::jit::Module net("net");
    net.register_parameter("conv", at::randn({4, 3, 3}).requires_grad_(), false);
    net.register_parameter("scale", at::rand({4}).requires_grad_(), false);
    net.register_buffer("mean", at::zeros({4}));
    net.register_buffer("var", at::ones({4}));
    for (const auto* name : {"wi", "wh"})
      net.register_parameter(name, at::randn({8, name[1] == 'i' ? 4 : 2}).requires_grad_(), false);
    net.define(R"(
def forward(self, x):
    y = torch.conv1d(x, self.conv)
    y = torch.batch_norm(y, self.scale, None, self.mean, self.var, True, 0.1, 1e-5, False)
    h = torch.zeros([2, 2])
    c = torch.zeros([2, 2])
    for i in range(3):
        h, c = torch.lstm_cell(y[:, :, i], [h, c], self.wi, self.wh)
    return h
)");
    return Subject{.tensors = paging::named_tensors(net, {.buffers = true}),
                   .forward = [net, x = input({2, 3, 6})]() mutable { return net.forward({x}).toTensor(); }};
  });
}

TEST_CASE("Optimizers' fused kernels work on paged parameters and paged state", "[modules]") {
  check_paged("fused AdamW", [] {
    const auto w = at::ones({50});
    const auto m = at::zeros({50});
    const auto v = at::zeros({50});
    return Subject{.tensors = {{.name = "w", .tensor = w}, {.name = "m", .tensor = m}, {.name = "v", .tensor = v}},
                   .forward = [=] {
                     at::_fused_adamw_({w}, {at::full({50}, 0.5)}, {m}, {v}, {}, {at::ones({})}, 1e-2, 0.9, 0.999, 0.01,
                                       1e-8, false, false);
                     return w.clone();
                   }};
  });
}

TEST_CASE("Reading parameters works on paged ones", "[modules]") {
  const auto w = at::arange(4).to(at::kFloat);
  const auto text_of = [&] {
    std::ostringstream out;
    out << w << w[1].item<float>() << at::allclose(w, w) << w.norm();
    return out.str();
  };
  const auto expected = text_of();
  const auto pager = page_in_host({{.name = "w", .tensor = w}}, 64, {.budget_bytes = evict_always});
  CHECK(text_of() == expected);
}

}  // namespace hortator::testing
