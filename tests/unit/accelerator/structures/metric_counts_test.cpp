// Metrics that count over ranks, against their definitions on all samples at once.
#include <cmath>

#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;

namespace {

/// Labels and predictions of a data set: sample i is the pair of numbers i.
struct Guesses {
  at::Tensor labels, found;

  std::int64_t size() const { return labels.size(0); }
  Example<> get(std::int64_t i) const { return {found[i], labels[i]}; }
};

Guesses guesses(std::int64_t count, std::int64_t classes, std::uint64_t seed) {
  at::manual_seed(seed);
  const auto labels = at::randint(classes, {count}, at::kLong);
  const auto found = at::where(at::rand({count}).lt(0.6), labels, at::randint(classes, {count}, at::kLong));
  return {.labels = labels, .found = found};
}

double count_of(const at::Tensor& mask) { return mask.sum().item<double>(); }

double plain_f1(const Guesses& all, std::int64_t positive) {
  const auto is_label = all.labels.eq(positive), is_found = all.found.eq(positive);
  const auto right = count_of(is_label.logical_and(is_found));
  if (right == 0) return 0;
  const auto precision = right / count_of(is_found), recall = right / count_of(is_label);
  return 2 * precision * recall / (precision + recall);
}

double plain_binary_matthews(const Guesses& all) {
  const auto pairs = [&](int label, int found) {
    return count_of(all.labels.eq(label).logical_and(all.found.eq(found)));
  };
  const auto tp = pairs(1, 1), tn = pairs(0, 0), fp = pairs(0, 1), fn = pairs(1, 0);
  return (tp * tn - fp * fn) / std::sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn));
}

/// The correlation of the indicators of all classes, which is Matthews' coefficient.
double plain_matthews(const Guesses& all, std::int64_t classes) {
  const auto indicators = [&](const at::Tensor& numbers) {
    const auto one = at::one_hot(numbers, classes).to(at::kDouble);
    return one - one.mean(0, true);
  };
  const auto labels = indicators(all.labels), found = indicators(all.found);
  const auto product = [](const at::Tensor& a, const at::Tensor& b) { return (a * b).sum().item<double>(); };
  return product(labels, found) / std::sqrt(product(labels, labels) * product(found, found));
}

void check_all(const ClassificationCounts& counts, const Guesses& all, std::int64_t classes) {
  CHECK(counts.samples() == all.size());
  CHECK(counts.accuracy() == Approx(count_of(all.labels.eq(all.found)) / static_cast<double>(all.size())));
  double sum = 0;
  for (std::int64_t i = 0; i < classes; ++i) {
    CHECK(counts.f1(i) == Approx(plain_f1(all, i)));
    sum += plain_f1(all, i);
  }
  CHECK(counts.macro_f1() == Approx(sum / static_cast<double>(classes)));
  CHECK(counts.matthews() == Approx(plain_matthews(all, classes)));
  if (classes == 2) CHECK(counts.matthews() == Approx(plain_binary_matthews(all)));
}

}  // namespace

TEST_CASE("accuracy, F1 and Matthews over ranks are those of all samples, each once") {
  const int world = State().num_processes(), rank = State().process_index();
  for (const std::int64_t classes : {2, 5}) {
    for (const std::int64_t count : {4 * world, 50 * world + 1, 30 * world + 3}) {
      const auto all = guesses(count + 40, classes, 7);
      Accelerator accelerator;
      auto loader = accelerator.prepare(data_loader(all, {.batch_size = 4}));
      ClassificationCounts counts(classes), gathered(classes);
      for (auto& batch : loader) {
        counts.add(batch.data, batch.target, loader.new_samples(rank));
        const auto [found, labels] = accelerator.gather_for_metrics(batch.data, batch.target);
        gathered.add(found, labels);
      }
      const auto total = accelerator.reduce(counts);
      check_all(total, all, classes);
      CHECK(at::equal(total.matrix(), gathered.matrix()));
      if (world > 1) CHECK(counts.samples() < total.samples());
    }
  }
}

TEST_CASE("perplexity over ranks weighs each token once, however unequal ranks are") {
  const State state;
  const int world = state.num_processes(), rank = state.process_index();
  at::manual_seed(3);
  const auto logits = at::randn({world * 3, 5, 11}) * 3;
  auto targets = at::randint(11, {world * 3, 5}, at::kLong);
  for (std::int64_t row = 0; row < world * 3; ++row) targets[row].slice(0, 1 + row % 5) = -100;
  Perplexity own, sums;
  const auto rows = [&](const at::Tensor& tensor) { return tensor.narrow(0, rank * 3, 3); };
  own.add_logits(rows(logits), rows(targets));
  Accelerator accelerator;
  const auto total = accelerator.reduce(own);

  double sum = 0;
  std::int64_t tokens = 0;
  for (std::int64_t row = 0; row < world * 3; ++row) {
    for (std::int64_t i = 0; i < 5; ++i) {
      const auto target = targets[row][i].item<std::int64_t>();
      if (target < 0) continue;
      const auto scores = logits[row][i].to(at::kDouble);
      sum += std::log(scores.exp().sum().item<double>()) - scores[target].item<double>();
      ++tokens;
    }
  }
  CHECK(total.tokens() == tokens);
  CHECK(total.mean_loss() == Approx(sum / static_cast<double>(tokens)));
  CHECK(total.value() == Approx(std::exp(sum / static_cast<double>(tokens))));
  sums.add(at::tensor(sum), tokens);
  CHECK(sums.value() == Approx(total.value()));
}

TEST_CASE("the area under the ROC over ranks is that of all pairs of samples, where ties count half") {
  Accelerator accelerator;
  const int world = accelerator.num_processes(), rank = accelerator.process_index();
  for (const std::int64_t levels : {2, 5, 1000000}) {
    at::manual_seed(11);
    const auto labels = at::randint(2, {301}, at::kLong);
    const auto scores = (at::rand({301}, at::kDouble) + labels * 0.3).mul(static_cast<double>(levels)).floor();
    Auroc mine;
    for (std::int64_t i = 0; i < 301; ++i) {  // ranks have different numbers of samples
      if ((i * i) % world == rank) mine.add(scores.narrow(0, i, 1), labels.narrow(0, i, 1));
    }
    const auto all = accelerator.merge(mine);
    CHECK(all.samples() == 301);
    const auto positive = scores.masked_select(labels.eq(1)).unsqueeze(1);
    const auto negative = scores.masked_select(labels.eq(0)).unsqueeze(0);
    const auto wins = positive.gt(negative).to(at::kDouble) + positive.eq(negative).to(at::kDouble) / 2;
    CHECK(all.value() == Approx(wins.mean().item<double>()).epsilon(1e-12));
  }
  Auroc padded;
  padded.add(at::tensor({0.1, 0.9, 0.5, 0.2}), at::tensor({0, 1, -100, 1}), 3);
  CHECK(padded.samples() == 2);
  CHECK(padded.value() == 1);
}

TEST_CASE("an area of one class, labels of others and scores that are no numbers are refused") {
  Auroc auroc;
  CHECK_THROWS_WITH(auroc.value(), ContainsSubstring("Of 0 samples, 0 are positive"));
  auroc.add(at::tensor({0.1, 0.2}), at::tensor({1, 1}));
  CHECK_THROWS_WITH(auroc.value(), ContainsSubstring("Of 2 samples, 2 are positive"));
  CHECK_THROWS_WITH(auroc.add(at::ones({2, 2}), at::tensor({0, 1})), ContainsSubstring("do not fit"));
  CHECK_THROWS_WITH(auroc.add(at::ones({2}), at::tensor({0, 2})), ContainsSubstring("not 0 or 1"));
  CHECK_THROWS_WITH(auroc.add(at::full({1}, std::nan("")), at::ones({1}, at::kLong)),
                    ContainsSubstring("not a number"));
}

TEST_CASE("a moving mean holds the last numbers of each rank") {
  Accelerator accelerator;
  const auto rank = accelerator.process_index(), world = accelerator.num_processes();
  MovingMean mean(3);
  CHECK_THROWS_WITH(mean.value(), ContainsSubstring("has no number"));
  for (int i = 0; i < 5 + rank; ++i) mean.add(at::full({1}, i * 10.0));
  CHECK(mean.count() == 3);
  CHECK(mean.value() == Approx(10.0 * (3 + rank)));
  const auto all = accelerator.merge(mean);
  CHECK(all.count() == 3 * world);
  CHECK(all.value() == Approx(10.0 * (3 + (world - 1) / 2.0)));
  MovingMean some(4);
  if (rank > 0) some.add(2);
  CHECK(accelerator.merge(some).count() == world - 1);
  MovingMean one(100), other(100);
  one.add(1);
  other.add(3);
  one.merge(other);
  for (int i = 0; i < 50; ++i) one.add(2);
  CHECK(one.count() == 52);
  CHECK(one.value() == Approx(2));
  for (int i = 0; i < 100; ++i) one.add(7);
  CHECK(one.count() == 100);
  CHECK(one.value() == Approx(7));
  CHECK_THROWS_WITH(MovingMean(0), ContainsSubstring("over 0 numbers"));
  CHECK_THROWS_WITH(some.add(at::ones({2})), ContainsSubstring("single numbers"));
}

TEST_CASE("merged counts are those that are summed by reduce()") {
  Accelerator accelerator;
  ClassificationCounts counts(3);
  counts.add(at::full({2}, accelerator.process_index() % 3, at::kLong), at::zeros({2}, at::kLong));
  CHECK(at::equal(accelerator.merge(counts).matrix(), accelerator.reduce(counts).matrix()));
  Perplexity perplexity;
  perplexity.add(at::full({}, 2.0 + accelerator.process_index()), 3);
  CHECK(accelerator.merge(perplexity).value() == accelerator.reduce(perplexity).value());
}

TEST_CASE("counts are merged, and padding does not count") {
  ClassificationCounts counts(3), other(3);
  counts.add(at::tensor({0, 1, 2, 0}), at::tensor({0, -100, 2, 1}));
  other.add(at::tensor({2, 2, 1, 0}).view({2, 2}), at::tensor({2, 1, 1, 1}).view({2, 2}), 1);
  counts.merge(other);
  CHECK(counts.samples() == 5);
  CHECK(counts.accuracy() == Approx(3.0 / 5));
  CHECK(at::equal(counts.matrix(), at::tensor({1, 0, 0, 1, 0, 1, 0, 0, 2}, at::kLong).view({3, 3})));
  Perplexity perplexity, more;
  perplexity.add(at::tensor(6.0), 3);
  more.add(at::tensor(2.0), 1);
  perplexity.merge(more);
  CHECK(perplexity.mean_loss() == Approx(2.0));
}

TEST_CASE("metrics of classes that never occur are 0, and nothing counted has no perplexity") {
  ClassificationCounts counts(3);
  CHECK(counts.accuracy() == 0);
  CHECK(counts.matthews() == 0);
  counts.add(at::tensor({0, 0}), at::tensor({0, 0}));
  CHECK(counts.f1(1) == 0);
  CHECK(counts.macro_f1() == 1);
  CHECK(counts.matthews() == 0);
  CHECK_THROWS_WITH(Perplexity().value(), ContainsSubstring("No token has been counted"));
}

TEST_CASE("samples that cannot be counted are refused") {
  ClassificationCounts counts(2);
  CHECK_THROWS_WITH(ClassificationCounts(0), ContainsSubstring("0 classes"));
  CHECK_THROWS_WITH(counts.add(at::ones({2}), at::ones({2}, at::kLong)), ContainsSubstring("argmax"));
  CHECK_THROWS_WITH(counts.add(at::full({1}, 1, at::kLong), at::tensor({1, 0})),
                    ContainsSubstring("[1]") && ContainsSubstring("[2]"));
  CHECK_THROWS_WITH(counts.add(at::tensor({1, 0}), at::tensor({1, 0}), 3), ContainsSubstring("3 rows"));
  CHECK_THROWS_WITH(counts.add(at::full({1}, 2, at::kLong), at::full({1}, 1, at::kLong)),
                    ContainsSubstring("not one of the 2 classes"));
  CHECK_THROWS_WITH(counts.add(at::full({1}, 1, at::kLong), at::full({1}, 2, at::kLong)),
                    ContainsSubstring("not one of the 2 classes"));
  CHECK_THROWS_WITH(counts.add(at::full({1}, -1, at::kLong), at::full({1}, 1, at::kLong)),
                    ContainsSubstring("not one of the 2 classes"));
  CHECK_THROWS_WITH(counts.merge(ClassificationCounts(3)), ContainsSubstring("3 classes"));
  CHECK_THROWS_WITH(counts.f1(2), ContainsSubstring("no class 2"));
  Perplexity padded, plain;  // what does not count may be anything
  const auto logits = at::tensor({1.0F, 2.0F, 0.5F, std::nanf(""), std::nanf(""), std::nanf("")}).view({2, 3});
  padded.add_logits(logits, at::tensor({std::int64_t{1}, std::int64_t{-100}}));
  plain.add_logits(logits.narrow(0, 0, 1), at::tensor({std::int64_t{1}}));
  CHECK(padded.value() == plain.value());
  Perplexity perplexity;
  CHECK_THROWS_WITH(perplexity.add(at::ones({2}), 2), ContainsSubstring("one number"));
  CHECK_THROWS_WITH(perplexity.add_logits(at::ones({2, 3}), at::ones({3}, at::kLong)), ContainsSubstring("do not fit"));
}
