#include <torch/ordered_dict.h>

#include <ATen/ops/ones.h>

#include <array>
#include <functional>
#include <hortator/detail/each_tensor.hpp>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "support/catch.hpp"

using hortator::detail::each_tensor;

namespace {

template <typename T>
int count(T value) {
  int found = 0;
  each_tensor(value, [&](at::Tensor& tensor) { found += tensor.defined() ? 1 : 0; });
  return found;
}

at::Tensor t() { return at::ones({1}); }

struct Output {
  at::Tensor logits;
  std::optional<at::Tensor> loss;
  std::vector<at::Tensor> layers;
  std::string name;
  int number = 0;
};
struct Nested {
  Output output;
  std::tuple<at::Tensor, at::Tensor> state;
};
struct One {
  at::Tensor only;
};
struct Tree {
  at::Tensor leaf;
  std::vector<Tree> branches;
};
struct Mixture {  // fields whose constructors accept nearly anything
  std::function<void()> call;
  std::unique_ptr<int> pointer;
  at::Scalar scalar;
  at::Tensor tensor;
  std::array<at::Tensor, 2> pair;
};
struct Ten {
  at::Tensor a, b, c, d, e, f, g, h, i, j;
};
struct Eleven {
  at::Tensor a, b, c, d, e, f, g, h, i, j, k;
};
struct Derived : One {
  at::Tensor more;
};
class Closed {
 public:
  explicit Closed(at::Tensor tensor) : tensor_(std::move(tensor)) {}

 private:
  at::Tensor tensor_;
};
class Opened {
 public:
  explicit Opened(at::Tensor tensor) : tensor_(std::move(tensor)) {}
  auto fields() { return std::tie(tensor_, number_); }

 private:
  at::Tensor tensor_;
  int number_ = 0;
};
struct Empty {};

}  // namespace

TEST_CASE("tensors are found in results of modules") {
  CHECK(count(t()) == 1);
  CHECK(count(std::tuple(t(), std::tuple(t(), t()))) == 3);
  CHECK(count(std::pair(t(), 3)) == 1);
  CHECK(count(std::vector<std::vector<at::Tensor>>{{t(), t()}, {t()}}) == 3);
  CHECK(count(std::array<at::Tensor, 2>{t(), t()}) == 2);
  CHECK(count(std::map<std::string, at::Tensor>{{"a", t()}, {"b", t()}}) == 2);
  CHECK(count(std::unordered_map<int, std::optional<at::Tensor>>{{1, t()}, {2, std::nullopt}}) == 1);
  CHECK(count(torch::data::Example<>(t(), t())) == 2);
  CHECK(count(torch::data::Example<at::Tensor, void>(t())) == 1);
  torch::OrderedDict<std::string, at::Tensor> ordered;
  ordered.insert("a", t());
  CHECK(count(ordered) == 1);
}

TEST_CASE("tensors are found in plain structs") {
  CHECK(count(Output{.logits = t(), .loss = t(), .layers = {t(), t()}, .name = "n"}) == 4);
  CHECK(count(Nested{.output = {.logits = t(), .loss = {}, .layers = {}, .name = {}}, .state = {t(), t()}}) == 3);
  CHECK(count(One{t()}) == 1);
  CHECK(count(Opened(t())) == 1);
  CHECK(count(Tree{t(), {Tree{t(), {}}, Tree{t(), {Tree{t(), {}}}}}}) == 4);
  CHECK(count(Ten{t(), t(), t(), t(), t(), t(), t(), t(), t(), t()}) == 10);
  Mixture mixture{.call = {}, .pointer = {}, .scalar = 1, .tensor = t(), .pair = {t(), t()}};
  int found = 0;
  each_tensor(mixture, [&](at::Tensor&) { ++found; });
  CHECK(found == 3);
}

TEST_CASE("opaque types are left alone") {
  CHECK(count(Eleven{t(), t(), t(), t(), t(), t(), t(), t(), t(), t(), t()}) == 0);
  CHECK(count(Derived{{t()}, t()}) == 0);
  CHECK(count(Closed(t())) == 0);
  CHECK(count(Empty{}) == 0);
  CHECK(count(std::string("text")) == 0);
  CHECK(count(std::vector<bool>{true}) == 0);
  CHECK(count(std::tuple<const at::Tensor>(t())) == 0);
  CHECK(count(3.0) == 0);
}
