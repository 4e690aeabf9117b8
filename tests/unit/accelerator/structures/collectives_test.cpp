#include <mpi.h>

#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;
using test::Rows;

TEST_CASE("gather concatenates in rank order; scalars become a vector") {
  Accelerator accelerator;
  const int n = accelerator.num_processes();
  const int me = accelerator.process_index();
  const auto rows = accelerator.gather(at::full({2, 3}, me, at::kLong));
  CHECK(rows.sizes() == at::IntArrayRef{2 * n, 3});
  CHECK(rows[2 * (n - 1)][0].item<int>() == n - 1);
  const auto numbers = accelerator.gather(at::scalar_tensor(me + 0.5));
  if (n == 1) {
    CHECK(numbers.dim() == 0);
  } else {
    CHECK(at::equal(numbers, at::arange(n) + 0.5));
  }
  CHECK_FALSE(accelerator.gather(at::ones({1}).requires_grad_() * 2).is_alias_of(rows));
}

TEST_CASE("reduce returns a new tensor, broadcast fills the given one") {
  Accelerator accelerator;
  const int n = accelerator.num_processes();
  const int me = accelerator.process_index();
  const auto mine = at::full({2}, me + 1.0);
  CHECK(accelerator.reduce(mine)[0].item<double>() == n * (n + 1) / 2);
  CHECK(accelerator.reduce(mine, Reduce::mean)[0].item<double>() == Approx((n + 1) / 2.0));
  CHECK(accelerator.reduce(mine, Reduce::max)[1].item<double>() == n);
  CHECK(accelerator.reduce(mine, Reduce::min)[1].item<double>() == 1);
  CHECK(mine[0].item<double>() == me + 1.0);
  CHECK_THROWS_WITH(accelerator.reduce(at::ones({1}, at::kLong), Reduce::mean), ContainsSubstring("mean of Long"));

  auto target = at::full({2}, me, at::kLong);
  accelerator.broadcast(target, n - 1);
  CHECK(target[0].item<int>() == n - 1);
}

TEST_CASE("pad_across_processes pads to the longest, at either end, along any dimension") {
  Accelerator accelerator;
  const int n = accelerator.num_processes();
  const int me = accelerator.process_index();
  const auto mine = at::full({me + 1, 2}, 7.0);
  const auto padded = accelerator.pad_across_processes(mine, {.pad_index = -1});
  CHECK(padded.sizes() == at::IntArrayRef{n, 2});
  CHECK(padded[me][1].item<double>() == 7);
  if (me < n - 1) CHECK(padded[n - 1][0].item<double>() == -1);

  const auto first = accelerator.pad_across_processes(mine.t(), {.dim = -1, .pad_index = -1, .pad_first = true});
  CHECK(first.sizes() == at::IntArrayRef{2, n});
  CHECK(first[0][n - 1].item<double>() == 7);
  if (me < n - 1) CHECK(first[0][0].item<double>() == -1);
  CHECK(accelerator.pad_across_processes(mine, {.dim = 2}).sizes() == mine.sizes());
}

TEST_CASE("a pad value that the tensor's type cannot hold is an error on all ranks") {
  Accelerator accelerator;
  const int me = accelerator.process_index();
  const std::vector<std::pair<at::ScalarType, double>> wrong = {{at::kByte, -1}, {at::kChar, 300},   {at::kLong, 0.5},
                                                                {at::kBool, 7},  {at::kHalf, 70000}, {at::kInt, NAN}};
  for (const auto& [type, number] : wrong) {
    INFO(type << ' ' << number);
    const auto mine = at::ones({me + 1}, type);
    CHECK_THROWS_WITH(accelerator.pad_across_processes(mine, {.pad_index = number}), ContainsSubstring("cannot hold"));
    const std::vector<at::Tensor> several = {at::ones({2}), mine};
    CHECK_THROWS_WITH(accelerator.pad_across_processes(several, {.pad_index = number}), ContainsSubstring("pad_index"));
  }
  const auto other = at::ones({me + 1}, accelerator.is_last_process() ? at::kByte : at::kLong);
  CHECK_THROWS_WITH(accelerator.pad_across_processes(other, {.pad_index = -1}), ContainsSubstring("Byte cannot hold"));
  const std::vector<at::Tensor> unpadded = {at::ones({me + 1, 2}),
                                            at::ones({3}, at::kByte)};  // the second has no dimension 1
  CHECK(accelerator.pad_across_processes(unpadded, {.dim = 1, .pad_index = -100})[1].numel() == 3);
  for (const auto& [type, number] :
       std::map<at::ScalarType, double>{{at::kByte, 255}, {at::kHalf, 0.1}, {at::kBool, 1}})
    CHECK(accelerator.pad_across_processes(at::ones({me + 1}, type), {.pad_index = number}).scalar_type() == type);
}

TEST_CASE("gather_for_metrics returns exactly the data set") {
  Accelerator accelerator;
  for (const bool shuffle : {false, true}) {
    for (std::int64_t count = 1; count <= 4L * accelerator.num_processes() + 3; ++count) {
      auto loader = accelerator.prepare(data_loader(Rows{count}, {.batch_size = 2, .shuffle = shuffle}));
      std::vector<at::Tensor> parts;
      std::vector<at::Tensor> targets;
      for (auto& batch : loader) {
        auto [data, target] = accelerator.gather_for_metrics(batch.data.select(1, 0), batch.target);
        parts.push_back(data);
        targets.push_back(target);
      }
      const auto seen = std::get<0>(at::cat(parts).sort());
      INFO(count << " samples");
      REQUIRE(seen.size(0) == count);
      CHECK(at::allclose(seen, 0.1 * (at::arange(count) + 1)));
      CHECK(at::cat(targets).size(0) == count);
    }
  }
}

TEST_CASE("an Accelerator uses the ranks of a given communicator") {
  const State world;
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, world.process_index() % 2, world.process_index(), &half);
  {
    Accelerator accelerator({.communicator = MPI_Comm_c2f(half)});
    CHECK(accelerator.num_processes() == (world.num_processes() + 1 - world.process_index() % 2) / 2);
    CHECK(accelerator.reduce(at::ones({1}))[0].item<int>() == accelerator.num_processes());
  }
  MPI_Comm_free(&half);
}

TEST_CASE("a tensor that is undefined on one rank is an error on all ranks") {
  Accelerator accelerator;
  if (accelerator.num_processes() == 1) return;
  const auto tensor = accelerator.is_last_process() ? at::Tensor() : at::ones({2});
  const auto reports_it = ContainsSubstring("undefined tensor");
  CHECK_THROWS_WITH(accelerator.reduce(tensor), reports_it);
  CHECK_THROWS_WITH(accelerator.gather(tensor), reports_it);
  CHECK_THROWS_WITH(accelerator.broadcast(tensor), reports_it);
  CHECK(at::equal(accelerator.reduce(at::ones({2})), at::full({2}, double(accelerator.num_processes()))));
}

TEST_CASE("gather of tensors with as many elements and different shapes is refused on all ranks, also in debug mode") {
  for (const auto* debug : {"0", "1"}) {
    setenv("HORTATOR_DEBUG", debug, 1);
    Accelerator accelerator;
    if (accelerator.num_processes() > 1) {
      const auto mine = accelerator.is_last_process() ? at::ones({3, 4}) : at::ones({2, 6});
      CHECK_THROWS_WITH(accelerator.gather(mine),
                        ContainsSubstring("different shapes") && ContainsSubstring("Float [3, 4]") &&
                            ContainsSubstring("Float [2, 6]") && ContainsSubstring("pad_across_processes"));
      CHECK_THROWS_WITH(accelerator.reduce(mine), ContainsSubstring("different shapes"));
      CHECK_THROWS_WITH(accelerator.broadcast(mine), ContainsSubstring("different shapes"));
    }
    CHECK(accelerator.gather(at::ones({2, 3, 4})).sizes() == at::IntArrayRef({2L * accelerator.num_processes(), 3, 4}));
  }
  unsetenv("HORTATOR_DEBUG");
}
