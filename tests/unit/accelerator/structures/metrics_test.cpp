// gather_for_metrics returns exactly the data set, for every kind of loader.
#include <algorithm>
#include <numeric>

#include "support/catch.hpp"
#include "unit/accelerator/counting_data.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;

namespace {

using test::Numbers;
using test::Stream;

using Batch = std::vector<std::int64_t>;
using Loader = DataLoader<at::Tensor>;

Batch values(const at::Tensor& tensor) {
  const auto flat = tensor.contiguous();
  return {flat.const_data_ptr<std::int64_t>(), flat.const_data_ptr<std::int64_t>() + flat.numel()};
}

Batch first_numbers(std::int64_t count) {
  Batch all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

data::BatchList batches_of(std::int64_t count) {
  data::BatchList batches;
  for (std::int64_t begin = 0; begin < count;) {
    const auto end = std::min(count, begin + 1 + begin % 3);
    auto& batch = batches.emplace_back();
    while (begin < end) batch.push_back(begin++);
  }
  return batches;
}

struct LoaderCase {
  std::string name;
  DataOptions options;
  Loader loader;
};

std::vector<LoaderCase> loader_cases(std::int64_t count, int world) {
  const LoaderOptions two{.batch_size = 2};
  const LoaderOptions split{.batch_size = 2 * world};
  return {
      {"shard", {}, data_loader(Numbers{count}, two)},
      {"uneven", {.even_batches = false}, data_loader(Numbers{count}, two)},
      {"split", {.split_batches = true}, data_loader(Numbers{count}, split)},
      {"split and uneven", {.split_batches = true, .even_batches = false}, data_loader(Numbers{count}, split)},
      {"dispatch", {.dispatch_batches = true}, data_loader(Numbers{count}, two)},
      {"dispatch and uneven", {.even_batches = false, .dispatch_batches = true}, data_loader(Numbers{count}, two)},
      {"varying", {}, data_loader(Numbers{count}, batches_of(count))},
      {"varying and uneven", {.even_batches = false}, data_loader(Numbers{count}, batches_of(count))},
      {"stream", {}, data_loader(Stream{count}, two)},
      {"stream on each rank", {.dispatch_batches = false}, data_loader(Stream{count}, two)},
      {"split stream", {.split_batches = true}, data_loader(Stream{count}, split)},
  };
}

// Every rank gets all samples, except ranks that left their loop earlier.
void check_exact(const Accelerator& accelerator, const Batch& gathered, std::int64_t count, bool all_end_together) {
  const auto exact = first_numbers(count);
  if (all_end_together) CHECK(gathered == exact);
  CHECK(gathered.size() <= exact.size());
  CHECK(std::equal(gathered.begin(), gathered.end(), exact.begin()));
  if (accelerator.is_main_process()) CHECK(gathered == exact);
}

}  // namespace

TEST_CASE(
    "gather_for_metrics returns exactly the data set, of tensors, structures and objects, for every kind of loader") {
  const int world = State().num_processes();
  for (const std::int64_t count : {0, 1, 2 * world - 1, 2 * world, 4 * world + 1, 5 * world + 2}) {
    for (auto& [name, options, loader] : loader_cases(count, world)) {
      INFO(name << ", " << count << " samples");
      Accelerator accelerator({.data = options});
      auto prepared = accelerator.prepare(loader);
      Batch tensors;
      Batch nested;
      std::vector<std::string> objects;
      Batch at_main;
      std::vector<std::string> objects_at_main;
      for (auto& batch : prepared) {
        const auto append = [](auto& all, const auto& some) { all.insert(all.end(), some.begin(), some.end()); };
        append(tensors, values(accelerator.gather_for_metrics(batch)));
        const std::map<std::string, std::pair<at::Tensor, at::Tensor>> structure{{"both", {batch, batch * 0.5}}};
        const auto parts = accelerator.gather_for_metrics(structure).at("both");
        CHECK(parts.second.scalar_type() == at::kFloat);
        append(nested, values(parts.first));
        std::vector<std::string> names;
        for (const auto number : values(batch)) names.push_back("s" + std::to_string(number));
        append(objects, accelerator.gather_for_metrics(names));
        const auto here = accelerator.gather_for_metrics_to_main(batch);
        const auto names_here = accelerator.gather_for_metrics_to_main(names);
        CHECK(here.has_value() == accelerator.is_main_process());
        CHECK(names_here.has_value() == accelerator.is_main_process());
        if (here) append(at_main, values(*here));
        if (names_here) append(objects_at_main, *names_here);
      }
      check_exact(accelerator, tensors, count, options.even_batches || options.dispatch_batches.value_or(false));
      CHECK(nested == tensors);
      CHECK(objects.size() == tensors.size());
      if (accelerator.is_main_process()) {
        CHECK(at_main == tensors);
        CHECK(objects_at_main == objects);
        for (std::size_t i = 0; i < objects.size(); ++i) CHECK(objects[i] == "s" + std::to_string(i));
      }
    }
  }
}

TEST_CASE("a stream that shards itself is gathered completely, each sample once") {
  struct ShardedStream {
    std::int64_t count = 0;
    std::int64_t at = 0;
    int world = 1;
    int rank = 0;
    void shard(int ranks, int me) {
      world = ranks;
      rank = me;
    }
    void reset() { at = rank; }
    std::optional<std::int64_t> next() {
      // the last rank has a third of the samples
      if (at >= (rank + 1 == world ? count / 3 : count)) return std::nullopt;
      return std::exchange(at, at + world);
    }
  };
  Accelerator accelerator;
  const int world = accelerator.num_processes();
  auto loader = accelerator.prepare(data_loader(ShardedStream{12 * world}, {.batch_size = 5}));
  Batch seen;
  Batch at_main;
  for (auto& batch : loader) {
    const auto some = values(accelerator.gather_for_metrics(batch));
    seen.insert(seen.end(), some.begin(), some.end());
    if (const auto here = accelerator.gather_for_metrics_to_main(batch)) {
      const auto rows = values(*here);
      at_main.insert(at_main.end(), rows.begin(), rows.end());
    }
  }
  std::sort(seen.begin(), seen.end());
  Batch exact;
  for (std::int64_t i = 0; i < 12 * world; ++i) {
    if (i % world + 1 < world || i < 4 * world) exact.push_back(i);
  }
  CHECK(seen == exact);
  CHECK(at_main.size() == (accelerator.is_main_process() ? exact.size() : 0));
}

TEST_CASE("a loader without its first batches is still gathered exactly") {
  Accelerator accelerator;
  const int world = accelerator.num_processes();
  const auto count = 4 * world + 1;
  for (auto loader : {accelerator.prepare(data_loader(Numbers{count}, {.batch_size = 2})),
                      accelerator.prepare(data_loader(Stream{count}, {.batch_size = 2}))}) {
    Batch seen;
    const auto remainder = skip_first_batches(loader, 1);
    for (auto& batch : remainder) {
      const auto some = values(accelerator.gather_for_metrics(batch));
      seen.insert(seen.end(), some.begin(), some.end());
    }
    auto exact = first_numbers(count);
    exact.erase(exact.begin(), exact.begin() + 2 * world);
    CHECK(seen == exact);
  }
}

TEST_CASE("gather_for_metrics uses the loader that runs, after a broken loop and within nested ones") {
  Accelerator accelerator;
  const int world = accelerator.num_processes();
  auto outer = accelerator.prepare(data_loader(Numbers{2 * world - 1}, {.batch_size = 1}));
  auto inner = accelerator.prepare(data_loader(Stream{2 * world + 1}, {.batch_size = 1}));
  for ([[maybe_unused]] auto& batch : outer) break;
  Batch of_outer;
  for (auto& batch : outer) {
    Batch of_inner;
    for (auto& other : inner) {
      const auto some = values(accelerator.gather_for_metrics(other));
      of_inner.insert(of_inner.end(), some.begin(), some.end());
    }
    CHECK(of_inner == first_numbers(2 * world + 1));
    const auto some = values(accelerator.gather_for_metrics(batch));
    of_outer.insert(of_outer.end(), some.begin(), some.end());
  }
  CHECK(of_outer == first_numbers(2 * world - 1));
}

TEST_CASE("gather_to_main concatenates tensors of different sizes, on the main process only") {
  Accelerator accelerator;
  const int world = accelerator.num_processes();
  const int me = accelerator.process_index();
  const auto mine = at::full({me, 2}, me, at::kLong);
  const auto rows = accelerator.gather_to_main(mine);
  const auto numbers = accelerator.gather_to_main(std::make_pair(at::scalar_tensor(me), mine));
  const auto names = accelerator.gather_to_main(std::vector<std::string>(static_cast<std::size_t>(me), "x"));
  CHECK(rows.has_value() == (me == 0));
  if (me > 0) return;
  CHECK(rows->sizes() == at::IntArrayRef({world * (world - 1) / 2, 2}));
  if (world > 1) CHECK(at::equal(numbers->first, at::arange(world).to(at::kFloat)));
  CHECK(numbers->second.sizes() == rows->sizes());
  CHECK(names->size() == static_cast<std::size_t>(world * (world - 1) / 2));
}

TEST_CASE("structures that cannot be joined are an error on all ranks") {
  Accelerator accelerator;
  if (accelerator.num_processes() == 1) return;
  const auto odd = at::zeros({1, 1 + accelerator.process_index()});
  CHECK_THROWS_WITH(accelerator.gather_to_main(odd), ContainsSubstring("Sizes of tensors must match"));
  const auto flat = accelerator.process_index() == 1 ? at::zeros({1}) : at::zeros({1, 1});
  CHECK_THROWS_WITH(accelerator.gather_to_main(flat), ContainsSubstring("gather got structures that differ"));
}

TEST_CASE("batches that cannot be dispatched are refused with the reason") {
  struct Opaque {
    std::shared_ptr<int> pointer;
  };
  struct Opaques {
    std::int64_t size() const { return 3; }
    Opaque get(std::int64_t) const { return {}; }
  };
  const auto join = [](const std::vector<Opaque>& samples) { return samples[0]; };
  Accelerator dispatching({.data = {.dispatch_batches = true}});
  CHECK_THROWS_WITH(dispatching.prepare(data_loader(Opaques{}, {}, join)),
                    ContainsSubstring("cannot be sent between ranks"));
  CHECK_THROWS_WITH(Accelerator({.data = {.dispatch_batches = true}, .reproducible = true}),
                    ContainsSubstring("reproducible = true with data.dispatch_batches = true"));
}

TEST_CASE("a stream whose batches stay where they are is read on each rank, as in Accelerate") {
  const State state;
  const auto world = state.num_processes(), rank = state.process_index();
  if (world == 1) return;  // no rank waits for others, and nothing is repeated
  const auto count = 5 * world;
  for (const bool by_option : {true, false}) {
    Accelerator accelerator({.device_placement = !by_option});
    auto loader = accelerator.prepare_data_loader(
        data_loader(Stream{count}, {.batch_size = 4}),
        by_option ? PrepareDataLoaderOptions{} : PrepareDataLoaderOptions{.device_placement = false});
    std::int64_t step = 0;
    for (auto& batch : loader) {
      const auto first = 4 * world * step++ + 4 * rank;
      const auto expected = at::arange(first, first + 4, at::kLong).remainder(count);
      CHECK(at::equal(batch.flatten().to(at::kLong), expected));
    }
    CHECK(step == 2);
  }
}
