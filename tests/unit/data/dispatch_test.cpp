// One reader per node, with real ranks. With several ranks, two form a node of the test.
#include <hortator/data.hpp>
#include <hortator/error.hpp>
#include <hortator/training/objects.hpp>
#include <thread>

#include "data/loader/dispatcher.hpp"
#include "mpi/collectives.hpp"
#include "streams.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::data_test;

namespace {

struct Job {
  explicit Job(bool one_node = false) : Job(mpi::Communicator::world(), one_node) {}
  Job(mpi::Communicator all, bool one_node)
      : world(std::move(all)), node(world.split(one_node ? 0 : world.rank() / 2, world.rank())) {}

  LoaderBinding binding(bool split = false) const {
    return {.rank = world.rank(),
            .world = world.size(),
            .split_batches = split,
            .dispatcher = std::make_shared<data::Dispatcher>(node, world, world.rank())};
  }
  bool reads() const { return node.rank() == 0; }

  mpi::Communicator world;
  mpi::Communicator node;
};

// The expected batches of a rank: full slices, in the last step slices as short as possible.
Batches expected(std::int64_t count, std::int64_t total, int world, int rank) {
  Batches batches;
  for (std::int64_t begin = 0; begin < count; begin += total) {
    const auto left = std::min(total, count - begin);
    const auto slice = (left + world - 1) / world;
    auto& batch = batches.emplace_back();
    for (std::int64_t i = 0; i < slice; ++i) batch.push_back((begin + rank * slice + i) % count);
  }
  return batches;
}

template <typename Loop>
std::string problem_of(const Loop& loop) {
  try {
    loop();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

Batch flat(const mpi::Communicator& world, const Batches& batches, const std::vector<std::int64_t>& rows) {
  // step by step, rank by rank, without repetitions
  Batch mine;
  Batch all;
  for (std::size_t step = 0; step < batches.size(); ++step) {
    ObjectWriter out;
    hortator::detail::write_object(
        out, Batch(batches[step].begin(), batches[step].begin() + static_cast<std::ptrdiff_t>(rows[step])));
    for (const auto& bytes : mpi::all_gather(world, std::string_view(out.take()))) {
      hortator::detail::decode(bytes, mine);
      all.insert(all.end(), mine.begin(), mine.end());
    }
  }
  return all;
}

}  // namespace

TEST_CASE("one rank of each node reads, and all get what is theirs, of data sets and streams of any length") {
  const Job job;
  const int world = job.world.size();
  for (std::int64_t count = 0; count <= 4 * world + 3; ++count) {
    for (const bool split : {false, true}) {
      for (const int prefetch : {0, 2}) {
        const LoaderOptions options{.batch_size = split ? 2 * world : 2, .prefetch = prefetch};
        const auto theirs = expected(count, 2 * world, world, job.world.rank());
        Watched dataset{count};
        auto loader = data_loader(dataset, options);
        loader.bind(job.binding(split));
        CHECK(loader.size() == static_cast<std::int64_t>(theirs.size()));
        CHECK(read(loader) == theirs);
        CHECK(read(loader) == theirs);
        if (!job.reads()) CHECK(*dataset.reads == 0);

        Counting stream{count};
        auto streamed = bound_stream(stream, options, job.binding(split));
        CHECK(read(streamed) == theirs);
        CHECK(read(streamed) == theirs);
        CHECK(*stream.reads == (job.reads() ? 2 * count : 0));
      }
    }
  }
}

TEST_CASE("a node's reader reads of a data set only what its ranks get") {
  const Job job;
  Watched dataset{8 * job.world.size()};
  auto loader = data_loader(dataset, {.batch_size = 2});
  loader.bind(job.binding());
  read(loader);
  if (job.reads()) CHECK(*dataset.reads == 8 * job.node.size());
}

TEST_CASE("flags, position and new samples are the same on all ranks") {
  const Job job;
  const int world = job.world.size();
  const auto count = 4 * world + 1;
  auto loader = bound_stream(Counting{count}, {.batch_size = 2}, job.binding());
  std::vector<std::int64_t> seen;
  for ([[maybe_unused]] auto& batch : loader) {
    seen.insert(seen.end(), {loader.end_of_dataloader() ? 1 : 0, loader.position(), loader.new_samples()});
    CHECK(loader.is_even_step());
  }
  CHECK(seen == std::vector<std::int64_t>{0, 2 * world, 2 * world, 0, 4 * world, 2 * world, 1, count, 1});
}

TEST_CASE("ranks that share a reader end together, also where batches need not be even") {
  const Job job;
  auto binding = job.binding();
  binding.even_batches = false;
  const auto count = 2 * job.world.size() + 1;
  auto loader = bound(count, {.batch_size = 2}, binding);
  const auto batches = read(loader);
  CHECK(batches.size() == 2);
  CHECK(batches.back() == std::vector<std::int64_t>{job.world.rank() == 0 ? count - 1 : job.world.rank() - 1});
  CHECK(loader.size() == 2);
}

TEST_CASE("batches of any size and of structures travel") {
  const Job job;
  struct Large {
    std::int64_t size() const { return 9; }
    auto get(std::int64_t i) const {
      return std::make_tuple(at::full({300'000 * (i % 3)}, i, at::kLong), std::make_pair(i, at::scalar_tensor(i)));
    }
  };
  using Sample = std::tuple<at::Tensor, std::pair<std::int64_t, at::Tensor>>;
  using Made = std::map<std::string, std::vector<at::Tensor>>;
  auto loader = data_loader(Large{}, {.batch_size = 1}, [](const std::vector<Sample>& samples) {
    return Made{{"one", {std::get<0>(samples[0]), std::get<1>(samples[0]).second}}};
  });
  loader.bind(job.binding());
  std::int64_t i = job.world.rank();
  for (auto& batch : loader) {
    const auto number = i % 9;
    const auto& tensors = batch.at("one");
    CHECK(tensors.at(0).numel() == 300'000 * (number % 3));
    if (tensors.at(0).numel() > 0) CHECK(tensors.at(0).eq(number).all().item<bool>());
    CHECK(tensors.at(1).item<double>() == static_cast<double>(number));
    i += job.world.size();
  }
}

TEST_CASE("what a reader throws is thrown on all ranks of its node, at the same batch") {
  const Job job(/*one_node=*/true);
  const int world = job.world.size();
  for (const int prefetch : {0, 3}) {
    const LoaderOptions options{.batch_size = 2, .prefetch = prefetch};
    Batches before;
    const auto collect = [&](const auto& loader) {
      return problem_of([&] {
        before.clear();
        for (auto& batch : loader) before.push_back(values(batch));
      });
    };
    auto loader = data_loader(Watched{10 * world, 4 * world + 1}, options);
    loader.bind(job.binding());
    const auto sample = "sample " + std::to_string(4 * world + 1) + " of the data set could not be read";
    CHECK_THAT(collect(loader), ContainsSubstring(sample));
    CHECK(before.size() == 2);
    CHECK_THAT(collect(loader), ContainsSubstring(sample));

    auto stream = bound_stream(Counting{10 * world, 4 * world + 1}, options, job.binding());
    CHECK_THAT(collect(stream), ContainsSubstring("the line is dead"));
    CHECK(before.size() == 2);
  }
}

TEST_CASE("a break ends the pass on all ranks, whatever is in progress, and a new loop begins again") {
  const Job job;
  struct Wide {
    std::int64_t size() const { return 400; }
    at::Tensor get(std::int64_t i) const { return at::full({50'000}, i, at::kLong); }
  };
  auto loader = data_loader(Wide{}, {.batch_size = 1, .prefetch = 4});
  loader.bind(job.binding());
  for (int pass = 0; pass < 10; ++pass) {
    int seen = 0;
    for (auto& batch : loader) {
      CHECK(batch[0][7].item<std::int64_t>() == seen * job.world.size() + job.world.rank());
      if (seen++ == pass) break;
    }
    CHECK(seen == pass + 1);
  }
}

TEST_CASE("loops over two dispatching loaders nest") {
  const Job job;
  auto outer = bound_stream(Counting{6}, {.batch_size = 2}, job.binding());
  auto inner = bound(5, {.batch_size = 1}, job.binding());
  std::size_t bodies = 0;
  const auto theirs = expected(5, job.world.size(), job.world.size(), job.world.rank());
  for ([[maybe_unused]] auto& batch : outer) {
    CHECK(read(inner) == theirs);
    ++bodies;
  }
  CHECK(bodies == expected(6, 2 * job.world.size(), job.world.size(), 0).size());
}

TEST_CASE("a slow rank does not hold the others up for ever, and loses nothing") {
  const Job job;
  for (int slow = 0; slow < job.world.size(); ++slow) {
    auto loader = bound_stream(Counting{40}, {.batch_size = 1}, job.binding());
    Batches batches;
    for (auto& batch : loader) {
      if (job.world.rank() == slow) std::this_thread::sleep_for(std::chrono::milliseconds(3));
      batches.push_back(values(batch));
    }
    CHECK(batches == expected(40, job.world.size(), job.world.size(), job.world.rank()));
  }
}

TEST_CASE("a reader that leaves its loop alone is an error on the others, and not for ever waited for") {
  const Job job(/*one_node=*/true);
  auto loader = bound_stream(Counting{1000}, {.batch_size = 1, .prefetch = 1}, job.binding());
  const auto said = problem_of([&] { read(loader, job.reads() ? 2 : 100'000); });
  if (job.reads()) {
    CHECK(said.empty());
  } else {
    CHECK_THAT(said, ContainsSubstring("The rank that reads for this node has left its loop"));
  }
  mpi::barrier(job.world);
  CHECK(read(loader) == expected(1000, job.world.size(), job.world.size(), job.world.rank()));
}

TEST_CASE("a rank that leaves its loop alone does not keep the reader from its own batches") {
  const Job job(/*one_node=*/true);
  auto loader = bound_stream(Counting{1000}, {.batch_size = 1}, job.binding());
  const auto theirs = expected(1000, job.world.size(), job.world.size(), job.world.rank());
  CHECK(read(loader, job.reads() ? theirs.size() + 1 : 2).size() == (job.reads() ? theirs.size() : 2));
  mpi::barrier(job.world);
  loader.set_epoch(1);
  CHECK(read(loader) == theirs);
}

TEST_CASE("a dispatching loader, stopped after any batch, resumes on any number of ranks") {
  const auto all = mpi::Communicator::world();
  const auto make = [](int kind, const LoaderBinding& binding) {
    const LoaderOptions options{.batch_size = 2};
    if (kind == 0) return bound(23, {.batch_size = 2, .shuffle = true}, binding);
    return kind == 1 ? bound_stream(Counting{23}, options, binding) : bound_stream(Placed{23}, options, binding);
  };
  const auto distributed = [&](int kind, int ranks, std::size_t at_most, std::string& state) {
    Batch result;
    if (all.rank() < ranks) {
      const Job job(all.first(ranks), false);
      auto loader = make(kind, job.binding());
      if (!state.empty()) loader.load(ObjectReader(state).read_state());
      Batches batches;
      std::vector<std::int64_t> rows;
      if (at_most > 0) {
        for (auto& batch : loader) {
          batches.push_back(values(batch));
          rows.push_back(loader.new_samples(all.rank()));
          if (batches.size() == at_most) break;
        }
      }
      result = flat(job.world, batches, rows);
      ObjectWriter out;
      out.write_state(loader.state());
      state = out.take();
      CHECK(mpi::broadcast(job.world, std::string_view(state)) == state);  // the same on all
    }
    state = mpi::broadcast(all, std::string_view(state));
    return result;
  };
  for (const int kind : {0, 1, 2}) {
    std::string none;
    const auto order = distributed(kind, 1, 1000, none);
    for (int before = 1; before <= all.size(); ++before) {
      for (std::size_t stop = 0; 2 * before * static_cast<int>(stop) < 23; ++stop) {
        for (int after = 1; after <= all.size(); ++after) {
          std::string state;
          auto seen = distributed(kind, before, stop, state);
          const auto rest = distributed(kind, after, 1000, state);
          if (all.rank() > 0) continue;
          seen.insert(seen.end(), rest.begin(), rest.end());
          INFO("kind " << kind << ", " << stop << " batches on " << before << " ranks, then " << after);
          CHECK(seen == order);
        }
      }
    }
  }
}
