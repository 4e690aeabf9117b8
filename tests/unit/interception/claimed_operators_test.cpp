#include "interception/claimed_operators.hpp"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <torch/autograd.h>

#include <functional>
#include <hortator/error.hpp>
#include <hortator/training/autocast.hpp>
#include <map>
#include <string>

#include "interception/dispatch_keys.hpp"
#include "interception/storage_memory.hpp"
#include "support/catch.hpp"

namespace hortator::interception {
namespace {

/// Provides one tensor, and records the calls.
class Watcher final : public StorageProvider {
 public:
  explicit Watcher(const at::Tensor& tensor) : tensor_(tensor) {
    start_interception();
    claim(tensor.storage(), {.provider = this, .number = 7});
    add_key(tensor);
  }
  ~Watcher() override {
    remove_key(tensor_);
    disclaim(tensor_.storage());
  }
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  void enter(int number, Access access) override {
    CHECK(number == 7);
    if (refuses) throw Error({.what = "no such page"});
    ++inside;
    (access == Access::write ? writes : reads) += 1;
    if (access == Access::read_cast) ++casts;
  }
  void leave(int /*number*/) noexcept override { --inside; }
  void hand_over(int /*number*/, Content /*content*/) override {}

  int reads = 0;
  int writes = 0;
  int casts = 0;  ///< of the reads
  int inside = 0;
  bool refuses = false;

 private:
  at::Tensor tensor_;
};

}  // namespace

TEST_CASE("The check passes whatever the caller's mode", "[interception]") {
  start_interception();
  const c10::InferenceMode inference;
  CHECK_NOTHROW(check_interception());
}

TEST_CASE("The provider sees an operator once, whatever it consists of", "[interception]") {
  const auto weight = at::randn({3, 4});
  Watcher watcher(weight);
  const auto product = at::linear(at::randn({2, 4}), weight);
  CHECK(watcher.reads == 1);
  CHECK(watcher.writes == 0);
  CHECK(watcher.inside == 0);
  CHECK_FALSE(carries_key(product));
}

// If LibTorch did not cast an operator's argument, the rounded parameter would give another result.
TEST_CASE("Operators whose arguments autocast casts compute the same from rounded parameters", "[interception]") {
  using Act = std::function<at::Tensor(const at::Tensor&)>;
  const auto weight = at::randn({4, 4});
  const auto x = at::randn({4, 4});
  const auto batch = [](const at::Tensor& matrix) { return matrix.unsqueeze(0); };
  const std::map<std::string, Act> cast = {
      {"linear", [&](const auto& w) { return at::linear(x, w, w[0]); }},
      {"matmul", [&](const auto& w) { return at::matmul(x, w); }},
      {"mm", [&](const auto& w) { return at::mm(w, x); }},
      {"bmm", [&](const auto& w) { return at::bmm(batch(x), batch(w)); }},
      {"addmm", [&](const auto& w) { return at::addmm(w, x, w); }},
      {"addbmm", [&](const auto& w) { return at::addbmm(w, batch(x), batch(w)); }},
      {"baddbmm", [&](const auto& w) { return at::baddbmm(batch(w), batch(x), batch(w)); }},
      {"conv1d",
       [&](const auto& w) {
         return at::conv1d(x, w.view({4, 4, 1}), w[1]);
       }},
      {"conv2d",
       [&](const auto& w) {
         return at::conv2d(x.view({4, 4, 1}), w.view({4, 4, 1, 1}), w[1]);
       }},
      {"conv3d",
       [&](const auto& w) {
         return at::conv3d(x.view({4, 4, 1, 1}), w.view({4, 4, 1, 1, 1}), w[1]);
       }},
      {"attention", [&](const auto& w) { return at::scaled_dot_product_attention(batch(x), batch(w), batch(w)); }}};
  for (const auto type : {at::kBFloat16, at::kHalf}) {
    const auto rounded = weight.to(type).to(at::kFloat);
    for (const auto& [name, act] : cast) {
      INFO(name << " in " << type);
      const Watcher watcher(weight);
      const Autocast autocast(c10::kCPU, type);
      CHECK(at::equal(act(weight), act(rounded)));
      CHECK(watcher.casts > 0);
      CHECK(watcher.casts == watcher.reads);
    }
  }
}

TEST_CASE("Operators that autocast leaves alone, and all where it is off, read whole values", "[interception]") {
  const auto weight = at::randn({4, 4});
  const auto x = at::randn({4, 4});
  const Watcher watcher(weight);
  at::linear(x, weight);
  {
    const Autocast autocast(c10::kCPU, at::kBFloat16);
    at::embedding(weight, at::zeros({2}, at::kLong));
    at::layer_norm(x, {4}, weight[0], weight[1]);
    weight.square().sum();
    const Autocast off(c10::kCPU, at::kBFloat16, {.enabled = false});
    at::linear(x, weight);
  }
  CHECK(watcher.reads == 6);
  CHECK(watcher.casts == 0);
}

TEST_CASE("Views do not read, and inherit the key", "[interception]") {
  const auto weight = at::randn({3, 4});
  Watcher watcher(weight);
  const auto view = weight.t().narrow(0, 1, 2).reshape({6});  // reshape has to copy, which reads
  CHECK(watcher.reads == 1);
  const auto part = weight.view({12}).slice(0, 2, 5).detach();
  CHECK(watcher.reads == 1);
  CHECK(part.sum().item<float>() == weight.flatten().slice(0, 2, 5).sum().item<float>());
  CHECK(watcher.reads > 1);
  CHECK(at::zeros_like(weight).sum().item<float>() == 0);
}

TEST_CASE("Writes are distinguished from reads", "[interception]") {
  const auto weight = at::ones({4});
  Watcher watcher(weight);
  weight.add_(1);
  CHECK(watcher.writes == 1);
  weight.view({2, 2}).select(0, 0).fill_(5);  // through a view
  CHECK(watcher.writes == 2);
  at::add_out(const_cast<at::Tensor&>(weight), at::ones({4}), at::ones({4}));
  CHECK(watcher.writes == 3);
  at::_foreach_add_({weight}, 1);  // in a list
  CHECK(watcher.writes == 4);
  CHECK(watcher.reads == 0);
}

TEST_CASE("Running statistics count as written, which the schema does not say", "[interception]") {
  const auto mean = at::zeros({3});
  Watcher watcher(mean);
  at::batch_norm(at::randn({5, 3}), {}, {}, mean, at::ones({3}), true, 0.1, 1e-5, false);
  CHECK(watcher.writes == 1);
}

TEST_CASE("Lists and optional tensors are found", "[interception]") {
  const auto weight = at::randn({3});
  Watcher watcher(weight);
  at::cat({at::randn({2}), weight});
  CHECK(watcher.reads == 1);
  at::layer_norm(at::randn({2, 3}), {3}, weight);
  CHECK(watcher.reads == 2);
  const auto index = at::ones({3}, at::kLong);
  Watcher indexed(index);
  at::randn({4, 4}).index({at::indexing::TensorIndex(index)});
  CHECK(indexed.reads > 0);
}

TEST_CASE("backward with inputs is not a single operator", "[interception]") {
  auto weight = at::randn({3, 4}).requires_grad_();
  Watcher watcher(weight);
  const auto input = at::randn({2, 4}).requires_grad_();
  const auto loss = at::linear(input, weight).sum();
  watcher.reads = 0;
  loss.backward({}, false, false, std::vector<at::Tensor>{input, weight});
  CHECK(watcher.reads == 1);  // for the gradient of the input
}

TEST_CASE("The operator throws what the provider throws", "[interception]") {
  const auto weight = at::randn({3});
  const auto other = at::randn({3});
  Watcher watcher(weight);
  Watcher refusing(other);
  refusing.refuses = true;
  CHECK_THROWS_WITH(at::add(weight, other), ContainsSubstring("no such page"));
  CHECK(watcher.inside == 0);
  refusing.refuses = false;
  CHECK_NOTHROW(at::add(weight, other));
}

TEST_CASE("An operator that throws leaves its storages", "[interception]") {
  const auto weight = at::randn({3});
  Watcher watcher(weight);
  CHECK_THROWS(at::add(weight, at::randn({4})));
  CHECK(watcher.inside == 0);
}

TEST_CASE("A hold enters and leaves all storages, or none", "[interception]") {
  const auto weight = at::randn({3});
  const auto other = at::randn({3});
  const auto free = at::randn({3});
  Watcher watcher(weight);
  Watcher refusing(other);
  {
    const Hold hold(std::vector<at::Tensor>{weight, free}, Access::write);
    CHECK(watcher.inside == 1);
    CHECK(watcher.writes == 1);
  }
  CHECK(watcher.inside == 0);
  refusing.refuses = true;
  CHECK_THROWS_AS(Hold(std::vector<at::Tensor>{weight, other}, Access::read), Error);
  CHECK(watcher.inside == 0);
}

TEST_CASE("A claimed storage cannot be claimed again", "[interception]") {
  const auto weight = at::randn({3});
  Watcher watcher(weight);
  CHECK_THROWS_AS(claim(weight.storage(), {.provider = &watcher}), UsageError);
}

TEST_CASE("Using a tensor that has lost its values throws, with or without an operator", "[interception]") {
  const auto weight = at::randn({3});
  {
    Watcher watcher(weight);
    take_memory(weight.storage(), "gone");
  }
  add_key(weight);  // as after the destruction of a pager
  CHECK_THROWS_WITH(at::add(weight, 1), ContainsSubstring("has no values"));
  CHECK_THROWS(weight.const_data_ptr<float>());
}

}  // namespace hortator::interception
