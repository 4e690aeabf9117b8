#include <hortator/training/collectives.hpp>
#include <hortator/training/structures.hpp>

#include "support/catch.hpp"

using namespace hortator;
using Catch::Matchers::ContainsSubstring;

namespace {

struct Output {
  at::Tensor logits;
  std::optional<at::Tensor> mask;
  auto fields() { return std::tie(logits, mask); }
};

at::Tensor number(double value) { return at::full({}, value, at::kFloat); }
at::Tensor numbers(std::vector<float> values) { return at::tensor(values); }

}  // namespace

TEST_CASE("a State's collectives give what an Accelerator's give") {
  const State state;
  const auto ranks = state.num_processes();
  const auto rank = state.process_index();
  Collectives collectives(state);
  const auto row = at::full({2, 3}, rank + 1.0);
  const auto all = collectives.gather(row);
  REQUIRE(all.sizes() == at::IntArrayRef({2 * ranks, 3}));
  for (int r = 0; r < ranks; ++r) CHECK(all[2 * r][0].item<double>() == r + 1.0);
  CHECK(collectives.reduce(number(rank)).item<double>() == ranks * (ranks - 1) / 2.0);
  CHECK(collectives.reduce(number(rank), Reduce::max).item<double>() == ranks - 1);
  CHECK(collectives.reduce(number(rank), Reduce::mean).item<double>() == (ranks - 1) / 2.0);
  CHECK(collectives.broadcast(number(rank), ranks - 1).item<double>() == ranks - 1);
  const auto padded = collectives.pad_across_processes(at::ones({rank + 1}), {.pad_index = -1});
  REQUIRE(padded.size(0) == ranks);
  CHECK(padded.sum().item<double>() == rank + 1 - (ranks - rank - 1));
}

TEST_CASE("a State's collectives accept structures and objects") {
  const State state;
  const auto ranks = state.num_processes();
  const auto rank = state.process_index();
  Collectives collectives(state);
  const auto all = collectives.gather(Output{.logits = at::full({1, 2}, rank), .mask = at::full({1}, -rank)});
  CHECK(at::equal(all.logits.select(1, 0), at::arange(ranks)));
  CHECK(at::equal(*all.mask, -at::arange(ranks)));
  const auto sum = collectives.reduce(std::vector<at::Tensor>{number(1), number(rank)});
  CHECK(sum[0].item<double>() == ranks);
  CHECK(sum[1].item<double>() == ranks * (ranks - 1) / 2.0);
  CHECK(collectives.broadcast(std::map<std::string, at::Tensor>{{"a", number(rank)}}).at("a").item<double>() == 0);
  const auto padded = collectives.pad_across_processes(std::pair(at::ones({rank + 1}), at::ones({1})));
  CHECK(padded.first.size(0) == ranks);
  CHECK(padded.second.size(0) == 1);

  std::vector<std::string> names = {"rank " + std::to_string(rank)};
  const auto everyone = collectives.gather_object(names);
  REQUIRE(everyone.size() == static_cast<std::size_t>(ranks));
  CHECK(everyone.back() == "rank " + std::to_string(ranks - 1));
  CHECK(collectives.gather_object(rank).size() == static_cast<std::size_t>(ranks));
  CHECK(collectives.broadcast_object_list(names, ranks - 1).front() == everyone.back());
}

TEST_CASE("connections of a State close, and others can be made") {
  const State state;
  for (int i = 0; i < 3; ++i) CHECK(Collectives(state).reduce(number(1)).item<double>() == state.num_processes());
  Collectives first(state);
  Collectives second(state);
  CHECK(second.reduce(first.reduce(number(1))).item<double>() == state.num_processes() * state.num_processes());
}

TEST_CASE("all ranks throw if structures of a State's collective differ") {
  const State state;
  if (state.num_processes() == 1) return;
  Collectives collectives(state);
  std::map<std::string, at::Tensor> values = {{state.process_index() == 1 ? "b" : "a", number(1)}};
  CHECK_THROWS_WITH(collectives.gather(values), ContainsSubstring("structures that differ between ranks"));
  CHECK_THROWS_WITH(collectives.broadcast_object_list(*std::make_unique<std::vector<int>>(), 99),
                    ContainsSubstring("99"));
}

TEST_CASE("helpers change every tensor of a structure and leave the argument as it is") {
  const Output before{.logits = at::ones({3, 2}, at::kHalf), .mask = at::zeros({3}, at::kLong)};
  const auto wide = convert_to_fp32(before);
  CHECK(wide.logits.scalar_type() == at::kFloat);
  CHECK(wide.mask->scalar_type() == at::kLong);
  CHECK(before.logits.scalar_type() == at::kHalf);
  const auto doubled = recursively_apply([](const at::Tensor& tensor) { return tensor * 2; }, before);
  CHECK(doubled.logits.sum().item<double>() == 12);
  CHECK(before.logits.sum().item<double>() == 6);
  CHECK(send_to_device(before, at::kMeta).logits.is_meta());
  CHECK(convert_to_fp32(at::ones({1}, at::kBFloat16)).scalar_type() == at::kFloat);
}

TEST_CASE("find_batch_size and find_device look at the first tensor") {
  const std::vector<at::Tensor> pair = {at::ones({5, 2}), at::ones({7})};
  CHECK(find_batch_size(pair) == 5);
  CHECK(find_batch_size(at::ones({4})) == 4);
  CHECK(find_device(pair) == c10::Device(at::kCPU));
  CHECK(find_device(std::vector<at::Tensor>{}) == std::nullopt);
  CHECK_THROWS_WITH(find_batch_size(std::vector<at::Tensor>{}), ContainsSubstring("has no tensors"));
  CHECK_THROWS_WITH(find_batch_size(number(1)), ContainsSubstring("has no dimensions"));
}

TEST_CASE("slice_tensors takes rows as Python's slices do") {
  const std::pair pair(at::arange(5), at::arange(10).view({5, 2}));
  const auto part = slice_tensors(pair, 1, 3);
  CHECK(at::equal(part.first, at::arange(1, 3)));
  CHECK(at::equal(part.second, at::arange(2, 6).view({2, 2})));
  CHECK(slice_tensors(pair, 4, 9).first.size(0) == 1);
  CHECK(slice_tensors(pair, -2, 9).first.size(0) == 2);
  CHECK_THROWS_WITH(slice_tensors(number(1), 0, 1), ContainsSubstring("without dimensions"));
}

TEST_CASE("concatenate joins the tensors of structures, which must be alike") {
  using Named = std::map<std::string, at::Tensor>;
  const auto whole = concatenate(std::vector<Named>{{{"x", numbers({1, 2})}}, {{"x", numbers({3})}}});
  CHECK(at::equal(whole.at("x"), numbers({1, 2, 3})));
  CHECK(concatenate(std::vector<at::Tensor>{at::ones({2, 1}), at::ones({2, 3})}, 1).size(1) == 4);
  CHECK_THROWS_WITH(concatenate(std::vector<Named>{{{"x", numbers({1})}}, {{"y", numbers({3})}}}),
                    ContainsSubstring("'y'") && ContainsSubstring("in the place of"));
  CHECK_THROWS_WITH(concatenate(std::vector<Named>{}), ContainsSubstring("no structures"));
}
