#include <ATen/autocast_mode.h>

#include <hortator/error.hpp>

#include "unit/parallel/tensor/rules/rule_cases.hpp"

using namespace hortator;
using namespace hortator::test;

TEST_CASE("embeddings and losses do not gather the vocabulary") {
  const auto table = numbers({16, 6}), scores = numbers({5, 16}, 1);
  const auto ids = at::tensor({0, 3, 7, 15, 8}, at::kLong), ignored = at::tensor({0, -100, 7, 15, -100}, at::kLong);
  const auto cross = [](const at::Tensor& x, const at::Tensor& target, std::int64_t reduction, double smoothing) {
    return at::cross_entropy_loss(x, target, {}, reduction, -100, smoothing);
  };
  compare_all({
      {"embedding", {{table, first}, {ids}}, [](const Tensors& t) { return at::embedding(t[0], t[1]); }},
      {"embedding with padding",
       {{table, first}, {ids}},
       [](const Tensors& t) {
         return at::embedding(t[0], t[1].view({5, 1}), 7);
       }},
      {"embedding by width",
       {{numbers({16, 8}), second}, {ids}},
       [](const Tensors& t) { return at::embedding(t[0], t[1]); },
       second},
      {"cross entropy",
       {{scores, second}, {ids}},
       [&](const Tensors& t) { return cross(t[0] * 4, t[1], at::Reduction::Mean, 0); }},
      {"cross entropy of each",
       {{scores, second}, {ignored}},
       [&](const Tensors& t) { return cross(t[0], t[1], at::Reduction::None, 0); }},
      {"cross entropy with smoothing",
       {{scores, second}, {ignored}},
       [&](const Tensors& t) { return cross(t[0], t[1], at::Reduction::Sum, 0.1); }},
      {"cross entropy of sequences",
       {{numbers({2, 3, 16}), third}, {at::tensor({0, 5, 9, 11, 15, 2}, at::kLong)}},
       [&](const Tensors& t) {
         return cross(t[0].view({-1, 16}), t[1], at::Reduction::Mean, 0);
       }},
      {"cross entropy of images",
       {{numbers({2, 8, 3}), second}, {at::tensor({0, 5, 7, 1, 3, 2}, at::kLong)}},
       [&](const Tensors& t) {
         return cross(t[0], t[1].view({2, 3}), at::Reduction::Mean, 0.2);
       }},
      {"nll_loss of log_softmax",
       {{scores, second}, {ignored}},
       [](const Tensors& t) { return at::nll_loss_nd(at::log_softmax(t[0], 1), t[1], {}, at::Reduction::Mean, -100); }},
      {"one score of large ones",
       {{scores * 100, second}, {ids}},
       [&](const Tensors& t) { return cross(t[0], t[1], at::Reduction::Mean, 0); }},
      {"cross entropy with class weights gathers",
       {{scores, second}, {ids}, {numbers({16}).abs()}},
       [](const Tensors& t) { return at::cross_entropy_loss(t[0], t[1], t[2].detach()); },
       std::nullopt,
       1},
  });
}

TEST_CASE("tensors of a vocabulary are never exchanged by a loss") {
  const TensorGroup group;
  const auto scores = group.divided(numbers({5, 16}), second);
  const auto before = group.ranks->traffic();
  at::cross_entropy_loss(scores * 1, at::tensor({0, 3, 7, 15, 8}, at::kLong)).backward();
  const auto& after = group.ranks->traffic();
  CHECK(after.gathers == before.gathers);
  CHECK(after.sum_bytes - before.sum_bytes <= 4 * 5 * 4);  // the maximum, and two numbers a row
}

TEST_CASE("numbers outside of the vocabulary or the classes are an error on all ranks") {
  const TensorGroup group;
  if (group.ranks->size() == 1) return;  // LibTorch's own operator
  const auto table = group.divided(numbers({16, 6}), first), scores = group.divided(numbers({2, 16}), second);
  for (const std::int64_t wrong : {-1, 16, 99}) {
    const auto ids = at::tensor({std::int64_t{3}, wrong});
    CHECK_THROWS_WITH(at::embedding(table, ids), ContainsSubstring("came to an embedding of 16"));
    CHECK_THROWS_WITH(at::cross_entropy_loss(scores, ids), ContainsSubstring("came to a loss of classes of 16"));
    CHECK_THROWS_WITH(at::nll_loss_nd(scores, ids), ContainsSubstring("came to a loss of classes of 16"));
  }
  CHECK(at::cross_entropy_loss(scores, at::tensor({3, -100}, at::kLong)).isfinite().item<bool>());
}

TEST_CASE("losses of bfloat16 scores have the type and the values of LibTorch's, within autocast and without") {
  const TensorGroup group;
  const auto whole = numbers({5, 16}).mul(4).to(at::kBFloat16);
  const auto ids = at::tensor({0, 3, 7, 15, 8}, at::kLong);
  for (const bool within : {false, true}) {
    INFO("autocast " << within);
    const bool before = at::autocast::is_autocast_enabled(at::kCPU);
    at::autocast::set_autocast_enabled(at::kCPU, within);
    const auto scores = group.divided(whole, second) * 1;
    const auto loss = at::cross_entropy_loss(scores, ids), expected = at::cross_entropy_loss(whole, ids);
    const auto log_loss = at::nll_loss_nd(at::log_softmax(scores, 1), ids);
    const auto expected_log_loss = at::nll_loss_nd(at::log_softmax(whole, 1), ids);
    at::autocast::set_autocast_enabled(at::kCPU, before);
    check_close(loss.detach(), expected, 1e-2);
    check_close(log_loss.detach(), expected_log_loss, 1e-2);
  }
}

TEST_CASE("a vocabulary that cannot be divided equally is padded, which no result shows") {
  const TensorGroup group;
  const auto rows = *parallel::padded(0, 13, group.ranks->size());
  const auto columns = rows.along(1), last = rows.along(2);
  const auto table = numbers({13, 6}), scores = numbers({5, 13}, 1), bias = numbers({13}, 2);
  const auto ids = at::tensor({0, 3, 12, 11, 8}, at::kLong), targets = at::tensor({0, 12, 7, -100, 9, 10}, at::kLong);
  const std::vector<RuleCase> cases = {
      {"embedding", {{table, rows}, {ids}}, [](const Tensors& t) { return at::embedding(t[0], t[1]); }},
      {"scores",
       {{numbers({2, 3, 6}), {}}, {table, rows}, {bias, rows}},
       [](const Tensors& t) { return at::linear(t[0], t[1], t[2]); },
       last},
      {"scores as nn::Linear",
       {{numbers({2, 3, 6}), {}}, {table, rows}, {bias, rows}},
       [](const Tensors& t) {
         auto y = t[0].matmul(t[1].t());
         y += t[2];
         return y.view({-1, 13});
       },
       columns},
      {"loss of scores",
       {{numbers({2, 3, 6}), {}}, {table, rows}, {targets}},
       [](const Tensors& t) {
         const auto x = (at::linear(t[0], t[1]) / 0.7).view({6, 13});
         return at::cross_entropy_loss(x, t[2], {}, at::Reduction::Mean, -100, 0.1);
       }},
      {"last tokens of sequences",
       {{numbers({2, 3, 13}), last}},
       [](const Tensors& t) { return t[0].slice(1, 1, 3).select(1, 0); },
       columns},
      {"nll_loss", {{scores, columns}, {ids}}, [](const Tensors& t) { return at::nll_loss_nd(t[0] * 1, t[1]); }},
      {"soft tokens", {{scores, columns}, {table, rows}}, [](const Tensors& t) { return t[0].matmul(t[1]); }},
  };
  for (const auto& one : cases) compare(group, one);
  if (rows.padding == 0) return;
  const std::vector<RuleCase> gathered = {
      {"softmax", {{scores, columns}}, [](const Tensors& t) { return at::softmax(t[0], 1); }, std::nullopt, 1},
      {"log", {{scores.abs() + 1, columns}}, [](const Tensors& t) { return at::log(t[0]); }, std::nullopt, 1},
      {"sum", {{scores, columns}}, [](const Tensors& t) { return t[0].sum(1); }, std::nullopt, 1},
      {"mean", {{scores, columns}}, [](const Tensors& t) { return t[0].mean(); }, std::nullopt, 1},
      {"argmax", {{scores, columns}}, [](const Tensors& t) { return t[0].argmax(1); }, std::nullopt, 1},
  };
  for (const auto& one : gathered) compare(group, one);
}
