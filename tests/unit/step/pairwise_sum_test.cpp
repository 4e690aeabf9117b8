#include "step/reproducible/pairwise_sum.hpp"

#include <ATen/ops/rand.h>
#include <ATen/ops/randperm.h>

#include "support/catch.hpp"

using namespace hortator;
using step::PairwiseSum;

namespace {

// A reference that sums level by level.
at::Tensor by_levels(std::vector<at::Tensor> terms) {
  while (terms.size() > 1) {
    std::vector<at::Tensor> next;
    for (std::size_t i = 0; i + 1 < terms.size(); i += 2) next.push_back(terms[i] + terms[i + 1]);
    if (terms.size() % 2 == 1) next.push_back(terms.back());
    terms = std::move(next);
  }
  return terms.front();
}

at::Tensor in_one_go(const std::vector<at::Tensor>& terms) {
  PairwiseSum sum;
  for (const auto& term : terms) sum.add(term.clone());
  CHECK(sum.terms() == static_cast<int>(terms.size()));
  return sum.take();
}

}  // namespace

TEST_CASE("the sum is equal whichever rank computes the lower part of the tree") {
  const auto all = at::rand({48, 257}) * 1e3;
  for (int count = 1; count <= 48; ++count) {
    const auto terms = all.narrow(0, 0, count).unbind(0);
    const auto expected = by_levels(terms);
    CHECK(at::equal(in_one_go(terms), expected));
    for (int run = 1; run <= count; run *= 2) {
      if (count % run != 0) continue;
      PairwiseSum upper;
      for (int begin = 0; begin < count; begin += run)
        upper.add(in_one_go({terms.begin() + begin, terms.begin() + begin + run}));
      CHECK(at::equal(upper.take(), expected));
    }
  }
}

TEST_CASE("the sum is equal in whichever order its terms come") {
  const auto all = at::rand({13, 257}) * 1e3;
  for (int count = 1; count <= 13; ++count) {
    const auto terms = all.narrow(0, 0, count).unbind(0);
    const auto expected = by_levels(terms);
    for (int order = 0; order < 20; ++order) {
      const auto numbers = at::randperm(count, at::kLong);
      PairwiseSum sum;
      for (int i = 0; i < count; ++i) {
        const auto number = numbers[i].item<std::int64_t>();
        sum.add(static_cast<int>(number), terms[static_cast<std::size_t>(number)].clone());
      }
      CHECK(sum.terms() == count);
      CHECK(at::equal(sum.take(), expected));
    }
  }
}

TEST_CASE("a sum in another order differs") {  // or the test above could not fail
  const auto terms = (at::rand({16, 257}) * 1e3).unbind(0);
  at::Tensor one_by_one = terms[0].clone();
  for (std::size_t i = 1; i < terms.size(); ++i) one_by_one += terms[i];
  CHECK_FALSE(at::equal(one_by_one, in_one_go(terms)));
}

TEST_CASE("take() empties the sum") {
  PairwiseSum sum;
  for (int round = 0; round < 2; ++round) {
    sum.add(at::ones({2}));
    sum.add(at::ones({2}));
    sum.add(at::ones({2}));
    CHECK(at::equal(sum.take(), at::full({2}, 3.0)));
    CHECK(sum.terms() == 0);
  }
}
