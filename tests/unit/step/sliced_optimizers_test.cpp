// The pure parts of optimizers that step slices.
#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "step/algorithms/byte_codes.hpp"
#include "step/algorithms/factored_squares.hpp"
#include "step/moments/moment_layout.hpp"
#include "step/optimizer/whole_owners.hpp"
#include "support/catch.hpp"

using namespace hortator;
using core::Range;
using step::MatrixLayout;

TEST_CASE("runs of rows cover each range of a parameter once, in order") {
  for (const auto& layout :
       {MatrixLayout{1, 4, 5}, MatrixLayout{3, 2, 3}, MatrixLayout{4, 1, 3}, MatrixLayout{3, 3, 1}}) {
    for (std::int64_t begin = 0; begin <= layout.elements(); ++begin) {
      for (auto end = begin; end <= layout.elements(); ++end) {
        const auto runs = step::matrix_runs(layout, {begin, end});
        CHECK(runs.size() <= 3);
        auto at = begin;
        for (const auto& run : runs) {
          const auto first = (run.matrix * layout.rows + run.row) * layout.columns + run.missing_front;
          CHECK(first == at);
          CHECK(run.elements.begin == at - begin);
          CHECK(run.elements.size() == run.matrices * run.rows * layout.columns - run.missing_front - run.missing_back);
          CHECK(run.missing_front < layout.columns);
          CHECK(run.missing_back < layout.columns);
          CHECK(run.row + run.rows <= layout.rows);
          CHECK((run.matrices == 1 || run.rows == layout.rows));
          at += run.elements.size();
        }
        CHECK(at == end);
      }
    }
  }
}

TEST_CASE("sums and estimates of slices are those of the whole parameter") {
  const auto whole = at::sin(at::arange(3 * 4 * 5, at::kDouble));
  const MatrixLayout layout{3, 4, 5};
  const auto rows = whole.view({3, 4, 5}).square().mean(2);
  const auto columns = whole.view({3, 4, 5}).square().mean(1);
  const auto expected =
      (rows.unsqueeze(2) * columns.unsqueeze(1) / rows.mean(1).view({3, 1, 1}).clamp_min(1e-9)).view({-1});
  for (std::int64_t cut = 0; cut <= 60; ++cut) {
    const step::FactoredSquares front(layout, {0, cut}), back(layout, {cut, 60});
    const auto a = front.sums(whole.narrow(0, 0, cut)), b = back.sums(whole.narrow(0, cut, 60 - cut));
    CHECK(at::allclose((a.rows + b.rows) / 5, rows, 1e-12));
    CHECK(at::allclose((a.columns + b.columns) / 4, columns, 1e-12));
    const auto joined = at::cat({front.estimate(rows, columns, 1e-9), back.estimate(rows, columns, 1e-9)});
    CHECK(at::allclose(joined, expected, 1e-12));
  }
}

TEST_CASE("bytes restore numbers to within half the distance of neighbouring codes") {
  for (const bool is_signed : {true, false}) {
    const auto codes = step::dynamic_codes(is_signed);
    CHECK(std::ranges::is_sorted(codes));
    CHECK(std::ranges::adjacent_find(codes) == codes.end());
    CHECK(codes.front() == Approx(is_signed ? -0.99297 : 0).epsilon(1e-4));
    CHECK(codes.back() == 1);
    const auto& converter = step::ByteCodes::of(is_signed, at::kCPU);
    at::manual_seed(3);
    auto numbers = at::randn({1000}, at::kFloat).pow(3);
    if (!is_signed) numbers = numbers.abs();
    auto bytes = at::zeros({1000}, at::kByte);
    auto scales = at::zeros({16}, at::kFloat);
    CHECK(at::equal(converter.restore(bytes, scales), at::zeros({1000}, at::kFloat)));
    converter.store(numbers, bytes, scales);
    const auto restored = converter.restore(bytes, scales);
    for (std::int64_t i = 0; i < 1000; ++i) {
      const float scale = scales[i / 64].item<float>();
      const float number = numbers[i].item<float>() / scale;
      const float found = restored[i].item<float>() / scale;
      float nearest = 2;
      for (const auto code : codes) nearest = std::min(nearest, std::abs(code - number));
      const bool is_kept_positive = !is_signed && number > 0 && found == Approx(codes[1]);
      CHECK((is_kept_positive || std::abs(found - number) <= nearest + 1e-6F));
      if (!is_signed && number > 0) CHECK(found > 0);
    }
  }
}

TEST_CASE("names of moments say how they lie over slices") {
  using step::MomentLayout;
  CHECK(step::moment_layout("exp_avg") == MomentLayout::elements);
  CHECK(step::moment_layout("bytes/exp_avg") == MomentLayout::bytes);
  CHECK(step::moment_layout("blocks/exp_avg") == MomentLayout::blocks);
  CHECK(step::moment_layout("whole/row_var") == MomentLayout::whole);
  CHECK(step::split_moment_path("state/0/first.weight/exp_avg").parameter == "state/0/first.weight");
  CHECK(step::split_moment_path("state/0/first.weight/exp_avg").moment == "exp_avg");
  CHECK(step::split_moment_path("state/0/first.weight/whole/row_var").parameter == "state/0/first.weight");
  CHECK(step::split_moment_path("state/0/first.weight/whole/row_var").moment == "whole/row_var");
  CHECK(step::split_moment_path("state/0/whole/step").parameter == "state/0");  // a parameter cannot be called "whole"
  CHECK(step::moment_range(MomentLayout::blocks, {128, 200}) == Range{2, 4});
  CHECK(step::moment_range(MomentLayout::blocks, {64, 64}).size() == 0);
  CHECK(step::moment_range(MomentLayout::bytes, {128, 200}) == Range{128, 200});
}

TEST_CASE("whole tensors are distributed over owners by cost") {
  const std::vector<double> costs = {1, 8, 3, 3, 2};
  for (int ranks = 1; ranks <= 5; ++ranks) {
    const auto owners = step::whole_owners(costs, ranks);
    std::vector<double> loads(static_cast<std::size_t>(ranks), 0.0);
    for (std::size_t i = 0; i < costs.size(); ++i) loads[static_cast<std::size_t>(owners[i])] += costs[i];
    const double total = std::accumulate(costs.begin(), costs.end(), 0.0);
    CHECK(*std::ranges::max_element(loads) <= std::max(8.0, 4.0 / 3 * total / ranks));
    CHECK(owners == step::whole_owners(costs, ranks));
  }
}
