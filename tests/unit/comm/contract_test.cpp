// The contract of comm::Communicator, run over every back end: what a new back end must pass.
#include <hortator/error.hpp>

#include "backends.hpp"
#include "support/catch.hpp"

using namespace hortator;
using comm::ReduceOp;

namespace {

const std::vector<at::ScalarType> number_types = {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kByte,
                                                  at::kChar,  at::kShort,  at::kInt,  at::kLong};
const std::vector<ReduceOp> operations = {ReduceOp::sum, ReduceOp::mean, ReduceOp::max, ReduceOp::min,
                                          ReduceOp::product};

// Small whole numbers, exact in every type, different on each rank.
at::Tensor sample(int rank, at::IntArrayRef sizes, at::ScalarType type) {
  std::int64_t count = 1;
  for (const auto size : sizes) count *= size;
  return at::arange(count).add(rank).remainder(3).add(1).view(sizes).to(type);
}

at::Tensor expected_reduction(int ranks, at::IntArrayRef sizes, at::ScalarType type, ReduceOp op) {
  auto result = sample(0, sizes, at::kDouble);
  for (int rank = 1; rank < ranks; ++rank) {
    const auto other = sample(rank, sizes, at::kDouble);
    if (op == ReduceOp::sum || op == ReduceOp::mean) result = result + other;
    if (op == ReduceOp::max) result = at::maximum(result, other);
    if (op == ReduceOp::min) result = at::minimum(result, other);
    if (op == ReduceOp::product) result = result * other;
  }
  if (op == ReduceOp::mean) result = result / ranks;
  return result.to(type);
}

}  // namespace

TEST_CASE("all_reduce: every type and operation") {
  for (const auto& name : test::backends()) {
    const auto communicator = test::make_backend(name);
    for (const auto type : number_types) {
      for (const auto op : operations) {
        if (op == ReduceOp::mean && !at::isFloatingType(type)) continue;
        auto tensor = sample(communicator->rank(), {3, 4}, type);
        communicator->all_reduce(tensor, op).wait();
        INFO(name << " " << type << " " << comm::name(op));
        CHECK(at::equal(tensor, expected_reduction(communicator->size(), {3, 4}, type, op)));
      }
    }
  }
}

TEST_CASE("all_reduce of bool: any and all") {
  for (const auto& name : test::backends()) {
    const auto communicator = test::make_backend(name);
    const bool several = communicator->size() > 1;
    const bool first = communicator->rank() == 0;
    for (const auto op : {ReduceOp::sum, ReduceOp::max, ReduceOp::min, ReduceOp::product}) {
      auto tensor = at::tensor({int64_t{1}, int64_t{0}, int64_t{first}}).to(at::kBool);
      communicator->all_reduce(tensor, op).wait();
      const bool any = op == ReduceOp::sum || op == ReduceOp::max;
      INFO(name << " " << comm::name(op));
      CHECK(tensor[0].item<bool>());
      CHECK_FALSE(tensor[1].item<bool>());
      CHECK(tensor[2].item<bool>() == (any || !several));
    }
  }
}

TEST_CASE("16-bit floats are summed in 32 bits and rounded once") {
  for (const auto& name : test::backends()) {
    const auto communicator = test::make_backend(name);
    if (communicator->name() == "nccl") continue;  // rounds each partial sum, as it does for everybody
    if (name.starts_with("nodes")) continue;       // nodes' sums are rounded before they travel
    const int n = communicator->size();
    // 256 + n * 0.5 is lost in bfloat16 when every partial sum is rounded to a step of 2.
    auto tensor = at::full({1}, communicator->rank() == 0 ? 256.0 : 1.0, at::kBFloat16);
    communicator->all_reduce(tensor, ReduceOp::sum).wait();
    CHECK(at::equal(tensor, at::full({1}, 256.0 + (n - 1), at::kFloat).to(at::kBFloat16)));
  }
}

TEST_CASE("reduce_scatter gives each rank its part") {
  for (const auto& name : test::backends()) {
    const auto communicator = test::make_backend(name);
    const int n = communicator->size();
    for (const auto type : {at::kFloat, at::kBFloat16, at::kLong}) {
      const auto input = sample(communicator->rank(), {3 * n, 4}, type);
      auto output = at::empty({3, 4}, type);
      communicator->reduce_scatter(output, input, ReduceOp::sum).wait();
      const auto all = expected_reduction(n, {3 * n, 4}, type, ReduceOp::sum);
      INFO(name << " " << type);
      CHECK(at::equal(output, all.narrow(0, 3 * communicator->rank(), 3)));
      CHECK(at::equal(input, sample(communicator->rank(), {3 * n, 4}, type)));
    }
  }
}

TEST_CASE("all_gather joins the ranks' tensors in rank order") {
  for (const auto& name : test::backends()) {
    const auto communicator = test::make_backend(name);
    const int n = communicator->size();
    for (const auto type : {at::kFloat, at::kBFloat16, at::kBool, at::kByte}) {
      const auto input = sample(communicator->rank(), {2, 3}, type);
      auto output = at::empty({2 * n, 3}, type);
      communicator->all_gather(output, input).wait();
      for (int rank = 0; rank < n; ++rank) {
        INFO(name << " " << type << " rank " << rank);
        CHECK(at::equal(output.narrow(0, 2 * rank, 2), sample(rank, {2, 3}, type)));
      }
    }
  }
}

TEST_CASE("broadcast from every root, in every type") {
  for (const auto& name : test::backends()) {
    const auto communicator = test::make_backend(name);
    for (int root = 0; root < communicator->size(); ++root) {
      for (const auto type : number_types) {
        auto tensor = sample(communicator->rank(), {7}, type);
        communicator->broadcast(tensor, root).wait();
        CHECK(at::equal(tensor, sample(root, {7}, type)));
      }
    }
    CHECK_THROWS_AS(communicator->broadcast(at::zeros({1}), communicator->size()), UsageError);
  }
}

TEST_CASE("broadcast of many tensors at once: of any types and strides, empty ones among them") {
  for (const auto& name : test::backends()) {
    const auto communicator = test::make_backend(name);
    const int root = communicator->size() - 1;
    const auto make = [](int rank) {
      return std::vector<at::Tensor>{sample(rank, {3}, at::kFloat), at::empty({0, 2}),
                                     sample(rank, {2, 3}, at::kLong).t(), sample(rank, {1}, at::kBool)};
    };
    const auto tensors = make(communicator->rank());
    communicator->broadcast_all(tensors, root).wait();
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      INFO(name << " " << i);
      CHECK(at::equal(tensors[i], make(root)[i]));
    }
    communicator->broadcast_all({}, 0).wait();
  }
}

TEST_CASE("non-contiguous tensors are reduced in place without touching their neighbours") {
  for (const auto& name : test::backends()) {
    const auto communicator = test::make_backend(name);
    const int n = communicator->size();
    auto wide = at::full({4, 6}, -1.0);
    auto column = wide.narrow(1, 2, 2).t();
    column.copy_(sample(communicator->rank(), {2, 4}, at::kFloat));
    communicator->all_reduce(column, ReduceOp::sum).wait();
    INFO(name);
    CHECK(at::equal(column, expected_reduction(n, {2, 4}, at::kFloat, ReduceOp::sum)));
    CHECK(at::equal(wide.narrow(1, 0, 2), at::full({4, 2}, -1.0)));

    auto gathered = at::full({2 * n, 6}, -1.0);
    auto part = gathered.narrow(1, 1, 3);
    communicator->all_gather(part, sample(communicator->rank(), {3, 2}, at::kFloat).t()).wait();
    CHECK(at::equal(part.narrow(0, 2 * (n - 1), 2), sample(n - 1, {3, 2}, at::kFloat).t()));
    CHECK(at::equal(gathered.narrow(1, 0, 1), at::full({2 * n, 1}, -1.0)));

    auto every_second = at::zeros({10}).slice(0, 0, 10, 2);
    every_second.add_(communicator->rank());
    communicator->broadcast(every_second, n - 1).wait();
    CHECK(at::equal(every_second, at::full({5}, static_cast<float>(n - 1))));
  }
}

TEST_CASE("empty tensors and scalars work") {
  for (const auto& name : test::backends()) {
    const auto communicator = test::make_backend(name);
    auto empty = at::empty({0, 3});
    communicator->all_reduce(empty, ReduceOp::sum).wait();
    communicator->broadcast(empty, 0).wait();
    communicator->all_gather(at::empty({0, 3}), empty).wait();
    communicator->reduce_scatter(at::empty({0}), at::empty({0}), ReduceOp::sum).wait();
    auto number = at::scalar_tensor(2.0);
    communicator->all_reduce(number, ReduceOp::sum).wait();
    CHECK(number.item<double>() == 2.0 * communicator->size());
  }
}

TEST_CASE("results have the same bits on every rank") {
  for (const auto& name : test::backends()) {
    const auto communicator = test::make_backend(name);
    at::manual_seed(static_cast<std::uint64_t>(communicator->rank()) + 1);
    auto tensor = at::randn({1001});
    communicator->all_reduce(tensor, ReduceOp::mean).wait();
    auto first = tensor.clone();
    communicator->broadcast(first, 0).wait();
    INFO(name);
    CHECK(at::equal(first, tensor));
  }
}

TEST_CASE("split makes independent communicators") {
  for (const auto& name : test::backends()) {
    const auto communicator = test::make_backend(name);
    const auto part = communicator->split(communicator->rank() % 2, communicator->rank());
    auto one = at::ones({1});
    part->all_reduce(one, ReduceOp::sum).wait();
    CHECK(one.item<int>() == part->size());
    CHECK(part->size() == (communicator->size() + 1 - communicator->rank() % 2) / 2);
    communicator->barrier();
    CHECK(communicator->allocate(5, at::kHalf).sizes() == at::IntArrayRef{5});
  }
}

TEST_CASE("conjugate and negative views send their values") {
  for (const auto& name : test::backends()) {
    const auto communicator = test::make_backend(name);
    const auto numbers = at::complex(at::ones({3}), at::full({3}, 2.0 + communicator->rank()));
    auto gathered = at::zeros({3 * communicator->size()}, numbers.options());
    communicator->all_gather(gathered, numbers.conj()).wait();
    const auto parts = at::imag(gathered);
    for (int rank = 0; rank < communicator->size(); ++rank) CHECK(parts[3 * rank].item<float>() == -2.0F - rank);
    const auto own = at::imag(numbers.conj());  // a negative view
    auto halves = at::zeros({3 * communicator->size()});
    communicator->all_gather(halves, own).wait();
    CHECK(halves[0].item<float>() == -2.0F);
  }
}
