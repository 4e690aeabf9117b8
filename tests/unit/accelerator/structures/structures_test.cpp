#include <array>
#include <unordered_map>

#include "accelerator/structures/packing.hpp"
#include "core/activity/activity.hpp"
#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;

namespace {

struct Output {
  at::Tensor logits;
  std::optional<at::Tensor> mask;
  auto fields() { return std::tie(logits, mask); }
};

struct Labelled {
  at::Tensor data;
  std::string name;
  auto fields() { return std::tie(data, name); }
};

static_assert(TensorStructure<Output>);
static_assert(TensorStructure<std::map<int, std::vector<Output>>>);
static_assert(TensorStructure<std::unordered_map<std::string, std::array<at::Tensor, 2>>>);
static_assert(TensorStructure<Example<>> && TensorStructure<Example<std::pair<at::Tensor, at::Tensor>, at::Tensor>>);
static_assert(!TensorStructure<at::Tensor>);
static_assert(!TensorStructure<std::map<std::string, int>>);
static_assert(!TensorStructure<std::map<double, at::Tensor>>);
static_assert(!TensorStructure<Labelled>);
static_assert(!TensorStructure<std::vector<std::vector<double>>>);

template <typename Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const UsageError& error) {
    return std::to_string(error.rank().value_or(-1)) + ": " + error.what();
  }
  return "nothing was thrown";
}

// The number of tensor collectives that this rank enters in `call`.
template <typename Call>
std::uint64_t tensor_collectives(const Call& call) {
  const auto count = [] {
    std::uint64_t entered = 0;
    for (const auto& standing : activity::view().progress) entered += standing.entered;
    return entered;
  };
  const auto before = count();
  call();
  return count() - before;
}

}  // namespace

TEST_CASE("gather keeps the type of a structure and joins each of its tensors") {
  Accelerator accelerator;
  const int n = accelerator.num_processes();
  const int me = accelerator.process_index();
  using Batch = std::map<std::string, std::vector<std::pair<at::Tensor, Example<>>>>;
  Batch mine;
  mine["a"].push_back({at::full({2}, me, at::kLong), {at::full({1, 3}, me + 0.5), at::full({1}, me, at::kDouble)}});
  mine["b"].push_back({at::full({3, 2}, -me, at::kLong), {at::full({5000, 1}, me + 0.25), at::full({}, me)}});
  const Batch whole = accelerator.gather(mine);
  CHECK(whole.at("a")[0].first.sizes() == at::IntArrayRef{2 * n});
  CHECK(whole.at("a")[0].first[2 * n - 1].item<int>() == n - 1);
  CHECK(whole.at("a")[0].second.data.sizes() == at::IntArrayRef{n, 3});
  CHECK(whole.at("a")[0].second.data[me][1].item<double>() == me + 0.5);
  CHECK(whole.at("a")[0].second.target.scalar_type() == at::kDouble);
  CHECK(whole.at("b")[0].first[3 * me + 1][1].item<int>() == -me);
  CHECK(whole.at("b")[0].second.data.size(0) == 5000 * n);
  CHECK(whole.at("b")[0].second.data[5000 * n - 1][0].item<double>() == n - 0.75);
  if (n > 1) CHECK(whole.at("b")[0].second.target.sizes() == at::IntArrayRef{n});
  CHECK(mine["a"][0].first.size(0) == 2);
}

TEST_CASE("structs with fields, optionals, arrays and unordered maps are structures") {
  Accelerator accelerator;
  const int n = accelerator.num_processes();
  const int me = accelerator.process_index();
  const Output output{.logits = at::full({2, 2}, me + 1.0), .mask = at::full({1}, true)};
  const Output whole = accelerator.gather(output);
  CHECK(whole.logits.size(0) == 2 * n);
  CHECK(whole.mask->size(0) == n);
  CHECK_FALSE(accelerator.gather(Output{.logits = at::ones({1}), .mask = {}}).mask);

  std::unordered_map<std::string, std::array<at::Tensor, 2>> table;
  // Inserted in another order on each rank: only the keys matter.
  for (int i = 0; i < 20; ++i) {
    const int key = (i * 7 + me * 3) % 20;
    table["key" + std::to_string(key)] = {at::full({1}, key * 10 + me), at::full({1}, 0.5)};
  }
  const auto sums = accelerator.reduce(table);
  for (const auto& [key, value] : sums) {
    CHECK(value[0].item<int>() == std::stoi(key.substr(3)) * 10 * n + n * (n - 1) / 2);
  }
}

TEST_CASE("reduce of a structure returns new tensors, with every operation") {
  Accelerator accelerator;
  const int n = accelerator.num_processes();
  const double mine = accelerator.process_index() + 1;
  const std::tuple<at::Tensor, at::Tensor, at::Tensor> structure{at::full({2}, mine), at::full({}, 2 * mine),
                                                                 at::full({70000}, mine)};
  const auto value = [&](Reduce operation, auto part) { return part(accelerator.reduce(structure, operation)); };
  const auto small = [](const auto& reduced) { return std::get<1>(reduced).template item<double>(); };
  const auto large = [](const auto& reduced) { return std::get<2>(reduced)[69999].template item<double>(); };
  CHECK(value(Reduce::sum, small) == n * (n + 1));
  CHECK(value(Reduce::sum, large) == n * (n + 1) / 2);
  CHECK(value(Reduce::mean, small) == Approx(n + 1));
  CHECK(value(Reduce::max, small) == 2 * n);
  CHECK(value(Reduce::min, small) == 2);
  double product = 1;
  for (int rank = 1; rank <= n; ++rank) product *= rank;
  CHECK(value(Reduce::product, large) == product);
  auto reduced = accelerator.reduce(structure);
  std::get<0>(reduced).fill_(-1);
  CHECK(small(reduced) == n * (n + 1));
  CHECK(std::get<0>(structure)[0].item<double>() == mine);
  CHECK(std::get<0>(reduced).storage().nbytes() == 2 * sizeof(float));
  CHECK_THROWS_WITH(accelerator.reduce(std::pair{at::ones({1}, at::kLong), at::ones({1}, at::kLong)}, Reduce::mean),
                    ContainsSubstring("mean of Long"));
}

TEST_CASE("broadcast fills a structure's tensors in place") {
  Accelerator accelerator;
  const int last = accelerator.num_processes() - 1;
  const int me = accelerator.process_index();
  std::vector<at::Tensor> tensors = {at::full({3}, me, at::kLong), at::full({2}, me + 0.5).requires_grad_()};
  const auto same = accelerator.broadcast(tensors, last);
  CHECK(tensors[0][2].item<int>() == last);
  CHECK(tensors[1][1].item<double>() == last + 0.5);
  CHECK(same[0].is_same(tensors[0]));
}

TEST_CASE("pad_across_processes pads each tensor of a structure to the largest of its own") {
  Accelerator accelerator;
  const int n = accelerator.num_processes();
  const int me = accelerator.process_index();
  const std::map<int, at::Tensor> mine = {
      {-1, at::full({me + 1, 2}, 7.0)}, {8, at::full({2 * (n - me)}, 7, at::kLong)}, {9, at::ones({})}};
  const auto padded = accelerator.pad_across_processes(mine, {.pad_index = -1});
  CHECK(padded.at(-1).sizes() == at::IntArrayRef{n, 2});
  CHECK(padded.at(8).sizes() == at::IntArrayRef{2 * n});
  CHECK(padded.at(9).dim() == 0);
  if (me > 0) CHECK(padded.at(8)[2 * n - 1].item<int>() == -1);
  CHECK(accelerator.gather(padded).at(-1).size(0) == n * n);
}

TEST_CASE("small tensors of one type are sent together") {
  Accelerator accelerator;
  if (accelerator.num_processes() == 1) return;
  const std::vector<at::Tensor> many(20, at::ones({3}));
  // One comparison and one collective, which the communicator counts once for itself.
  CHECK(tensor_collectives([&] { accelerator.gather(many); }) == 2);
  CHECK(tensor_collectives([&] { accelerator.reduce(many); }) == 2);
  CHECK(tensor_collectives([&] { accelerator.broadcast(many); }) == 2);
  CHECK(tensor_collectives([&] { accelerator.pad_across_processes(many); }) == 2);
}

TEST_CASE("plan_packs puts small tensors of one type together and large ones into separate packs, in order") {
  using Packs = std::vector<std::vector<std::size_t>>;
  const auto large = at::ones({1 << 13});
  CHECK(accelerator::plan_packs({}).empty());
  CHECK(accelerator::plan_packs({at::ones({2}), large, at::ones({2}, at::kLong), at::ones({}), large, at::ones({0})}) ==
        Packs{{0, 3, 5}, {1}, {2}, {4}});
}

TEST_CASE("if structures differ between ranks, all ranks throw an error that names the first difference") {
  Accelerator accelerator;
  const int n = accelerator.num_processes();
  if (n == 1) return;
  const bool last = accelerator.is_last_process();
  const auto culprit = std::to_string(n - 1);
  const auto rank_has = [&](const std::string& text) { return ", rank " + culprit + " has " + text; };

  const std::vector<at::Tensor> lists(last ? 3 : 2, at::ones({2}));
  auto text = error_of([&] { accelerator.gather(lists); });
  CHECK_THAT(text, StartsWith(culprit + ": gather got structures that differ between ranks: rank 0 has nothing more" +
                              rank_has("[2]: Float [2]")));

  const std::map<std::string, at::Tensor> keys = {{"loss", at::ones({2})}, {last ? "b" : "z", at::ones({2})}};
  text = error_of([&] { accelerator.reduce(keys); });
  CHECK_THAT(text, ContainsSubstring("reduce got") &&
                       ContainsSubstring("rank 0 has ['loss']: Float [2]" + rank_has("['b']: Float [2]")));

  const std::pair<at::Tensor, at::Tensor> shapes = {at::ones({2}), at::ones({last ? 4 : 3, 2})};
  text = error_of([&] { accelerator.gather(shapes); });
  CHECK_THAT(text, ContainsSubstring("rank 0 has .second: Float [3, 2]" + rank_has(".second: Float [4, 2]")));
  text = error_of([&] { accelerator.broadcast(shapes); });
  CHECK_THAT(text, ContainsSubstring("broadcast got"));

  const std::vector<at::Tensor> dimensions = {at::ones(last ? at::IntArrayRef{2, 2} : at::IntArrayRef{2})};
  text = error_of([&] { accelerator.pad_across_processes(dimensions); });
  CHECK_THAT(text, ContainsSubstring("rank 0 has [0]: Float, 1 dimension" + rank_has("[0]: Float, 2 dimensions")));

  const std::optional<at::Tensor> sometimes = last ? std::optional(at::ones({1})) : std::nullopt;
  text = error_of([&] { accelerator.gather(sometimes); });
  CHECK_THAT(text, ContainsSubstring("rank 0 has nothing more" + rank_has(".value: Float [1]")));

  CHECK(accelerator.gather(std::vector<at::Tensor>{at::ones({1})})[0].size(0) == n);  // the ranks can continue
}

TEST_CASE("gather_for_metrics of a structure returns exactly the data set") {
  Accelerator accelerator;
  for (std::int64_t count = 1; count <= 4L * accelerator.num_processes() + 3; ++count) {
    auto loader = accelerator.prepare(data_loader(test::Rows{count}, {.batch_size = 2}));
    std::int64_t seen = 0;
    for (auto& batch : loader) {
      const Example<> whole = accelerator.gather_for_metrics(batch);
      const auto [data, pair] = accelerator.gather_for_metrics(batch.data, std::pair{batch.target, batch.data});
      CHECK(data.size(0) == whole.data.size(0));
      CHECK(pair.first.size(0) == whole.data.size(0));
      CHECK(whole.target.size(0) == whole.data.size(0));
      seen += whole.data.size(0);
    }
    INFO(count << " samples");
    REQUIRE(seen == count);
  }
}

TEST_CASE("loaders move the tensors of structs with fields") {
  const auto to_meta = [](const at::Tensor& tensor) { return data::placed(tensor, {.device = at::kMeta}); };
  Labelled batch{.data = at::ones({2}), .name = "a"};
  hortator::detail::change_tensors(batch, to_meta);
  CHECK(batch.data.is_meta());
  std::map<int, std::vector<Labelled>> nested = {{1, {{.data = at::ones({2}), .name = "b"}}}};
  hortator::detail::change_tensors(nested, to_meta);
  CHECK(nested[1][0].data.is_meta());
}
