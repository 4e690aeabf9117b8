// The contract of Communicator::exchange and of the verbs made from it, run over every back end.
#include <hortator/error.hpp>

#include "backends.hpp"
#include "comm/transfers.hpp"
#include "core/text/text.hpp"
#include "support/catch.hpp"

using namespace hortator;
using comm::PeerTensor;

namespace {

/// A number that no other rank has, for what `from` sends to `to`.
at::Tensor parcel(int from, int to, std::int64_t elements, at::ScalarType type = at::kFloat) {
  return at::arange(elements).add(10 * from + to).remainder(100).to(type);
}

template <typename Call>
std::string problem_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

void check_works(comm::Communicator& communicator) {
  auto one = at::ones({3});
  communicator.all_reduce(one, comm::ReduceOp::sum).wait();
  CHECK(one.eq(communicator.size()).all().item<bool>());
}

}  // namespace

TEST_CASE("exchange: each rank sends another number of elements to each rank, itself included") {
  for (const auto& name : test::backends()) {
    const auto communicator = test::make_backend(name);
    const int rank = communicator->rank();
    for (const auto type : {at::kFloat, at::kBFloat16, at::kLong, at::kBool}) {
      std::vector<PeerTensor> sent;
      std::vector<PeerTensor> received;
      for (int peer = 0; peer < communicator->size(); ++peer) {
        sent.push_back({parcel(rank, peer, 7 * rank + 3 * peer, type), peer});
        received.push_back({at::empty({7 * peer + 3 * rank}, type), peer});
      }
      communicator->exchange(sent, received).wait();
      for (const auto& [tensor, peer] : received) {
        INFO(name << " " << type << " from " << peer);
        CHECK(at::equal(tensor, parcel(peer, rank, 7 * peer + 3 * rank, type)));
      }
    }
  }
}

TEST_CASE("exchange: a ring, with blocks larger than a back end's staging memory") {
  for (const auto& name : test::backends()) {
    const auto communicator = test::make_backend(name);
    const int n = communicator->size();
    const int rank = communicator->rank();
    const std::int64_t many = name.find("small") == std::string::npos ? 300'001 : 1001;
    const int next = (rank + 1) % n;
    const int previous = (rank + n - 1) % n;
    auto received = at::empty({many});
    communicator->exchange({{parcel(rank, next, many), next}}, {{received, previous}}).wait();
    INFO(name);
    CHECK(at::equal(received, parcel(previous, rank, many)));
  }
}

TEST_CASE("exchange: several tensors between two ranks arrive in order, whatever their types and strides") {
  for (const auto& name : test::backends()) {
    const auto communicator = test::make_backend(name);
    const int n = communicator->size();
    const int rank = communicator->rank();
    const int last = n - 1;
    std::vector<PeerTensor> sent;
    std::vector<PeerTensor> received;
    auto wide = at::full({4, 6}, -1.0);
    auto column = wide.narrow(1, 2, 2).t();
    auto numbers = at::empty({5}, at::kLong);
    auto complex = at::zeros({2}, at::kComplexFloat);
    const auto value = at::complex(at::ones({2}), at::full({2}, 3.0));
    if (rank == last) {
      sent = {{parcel(last, 0, 8).view({4, 2}).t(), 0}, {at::arange(5), 0}, {value.conj(), 0}, {at::empty({0}), 0}};
    }
    if (rank == 0) received = {{column, last}, {numbers, last}, {complex, last}, {at::empty({0, 3}), last}};
    communicator->exchange(sent, received).wait();
    if (rank != 0) continue;
    INFO(name);
    CHECK(at::equal(column, parcel(last, 0, 8).view({4, 2}).t()));
    CHECK(at::equal(wide.narrow(1, 0, 2), at::full({4, 2}, -1.0)));
    CHECK(at::equal(numbers, at::arange(5)));
    CHECK(at::equal(at::imag(complex), at::full({2}, -3.0)));
  }
}

TEST_CASE("exchange: ranks without anything to send or receive take part with empty lists") {
  for (const auto& name : test::backends()) {
    const auto communicator = test::make_backend(name);
    communicator->exchange({}, {}).wait();
    check_works(*communicator);
  }
}

TEST_CASE("exchange between two other collectives that are waited for later") {
  for (const auto& name : test::backends()) {
    const auto communicator = test::make_backend(name);
    const int n = communicator->size();
    const int rank = communicator->rank();
    auto before = at::ones({1000});
    auto after = at::ones({1000});
    auto received = at::empty({10});
    auto first = communicator->all_reduce(before, comm::ReduceOp::sum);
    auto middle = communicator->exchange({{parcel(rank, n - 1 - rank, 10), n - 1 - rank}}, {{received, n - 1 - rank}});
    auto third = communicator->all_reduce(after, comm::ReduceOp::sum);
    first.wait();
    middle.wait();
    third.wait();
    INFO(name);
    CHECK(at::equal(received, parcel(n - 1 - rank, rank, 10)));
    CHECK(before.eq(n).all().item<bool>());
    CHECK(after.eq(n).all().item<bool>());
  }
}

TEST_CASE("exchange: sizes that do not match make all ranks throw both sides, and nothing is sent") {
  for (const auto& name : test::backends()) {
    const auto communicator = test::make_backend(name);
    const int n = communicator->size();
    const int rank = communicator->rank();
    auto received = at::full({3}, -1.0);
    const auto text = problem_of([&] {
      std::vector<PeerTensor> sent;
      std::vector<PeerTensor> expected;
      if (rank == 0) sent.push_back({at::ones({4}), n - 1});
      if (rank == n - 1) expected.push_back({received, 0});
      communicator->exchange(sent, expected).wait();
    });
    INFO(name);
    CHECK_THAT(text,
               ContainsSubstring(text::concat("Rank 0 sends Float [4] to rank ", n - 1, ", which expects Float [3]")));
    CHECK(received.eq(-1).all().item<bool>());
    check_works(*communicator);

    const auto missing = problem_of([&] {
      std::vector<PeerTensor> sent;
      if (rank == 0) sent.push_back({at::ones({4}, at::kLong), n - 1});
      communicator->exchange(sent, {}).wait();
    });
    CHECK_THAT(missing, ContainsSubstring("sends Long [4]") && ContainsSubstring("which expects nothing"));
    check_works(*communicator);
  }
}

TEST_CASE("exchange: a tensor or peer that one rank cannot use makes all ranks throw") {
  for (const auto& name : test::backends()) {
    const auto communicator = test::make_backend(name);
    const bool is_last = communicator->rank() == communicator->size() - 1;
    const auto check = [&](const PeerTensor& bad, const std::string& reason) {
      const auto text = problem_of([&] {
        communicator->exchange(is_last ? std::vector<PeerTensor>{bad} : std::vector<PeerTensor>(), {}).wait();
      });
      INFO(name);
      CHECK_THAT(text, ContainsSubstring(reason));
      check_works(*communicator);
    };
    check({at::Tensor(), 0}, "undefined tensor");
    check({at::ones({1}), communicator->size()}, text::concat("send to rank ", communicator->size()));
  }
}

TEST_CASE("send brings a tensor from one rank to another") {
  for (const auto& name : test::backends()) {
    const auto communicator = test::make_backend(name);
    for (int from = 0; from < communicator->size(); ++from) {
      const int to = communicator->size() - 1 - from;
      auto tensor = at::full({2, 3}, static_cast<float>(communicator->rank()));
      comm::send(*communicator, tensor, from, to).wait();
      const int expected = communicator->rank() == to ? from : communicator->rank();
      INFO(name);
      CHECK(tensor.eq(expected).all().item<bool>());
    }
  }
}

TEST_CASE("all_to_all with sizes: each rank gets its rows of every other") {
  for (const auto& name : test::backends()) {
    const auto communicator = test::make_backend(name);
    const int n = communicator->size();
    const int rank = communicator->rank();
    std::vector<std::int64_t> rows_to;
    std::vector<at::Tensor> rows;
    for (int peer = 0; peer < n; ++peer) {
      rows_to.push_back((rank + 2 * peer) % 4);
      rows.push_back(at::full({rows_to.back(), 2}, 10.0 * rank + peer));
    }
    const auto rows_from = comm::rows_from(*communicator, rows_to, at::kCPU);
    std::int64_t total = 0;
    for (int peer = 0; peer < n; ++peer) {
      CHECK(rows_from[static_cast<std::size_t>(peer)] == (peer + 2 * rank) % 4);
      total += rows_from[static_cast<std::size_t>(peer)];
    }
    auto output = at::empty({total, 2});
    comm::all_to_all(*communicator, output, at::cat(rows), rows_to, rows_from).wait();
    std::int64_t begin = 0;
    for (int peer = 0; peer < n; ++peer) {
      const auto count = rows_from[static_cast<std::size_t>(peer)];
      INFO(name << " from " << peer);
      CHECK(output.narrow(0, begin, count).eq(10 * peer + rank).all().item<bool>());
      begin += count;
    }
  }
}

TEST_CASE("all_to_all: sizes of one rank that do not fit its tensor make all ranks throw") {
  for (const auto& name : test::backends()) {
    const auto communicator = test::make_backend(name);
    const int n = communicator->size();
    const std::vector<std::int64_t> ones(static_cast<std::size_t>(n), 1);
    const bool is_last = communicator->rank() == n - 1;
    const auto text = problem_of(
        [&] { comm::all_to_all(*communicator, at::empty({n}), at::ones({is_last ? n + 1 : n}), ones, ones).wait(); });
    INFO(name);
    if (is_last) {
      CHECK_THAT(text, StartsWith(text::concat("all_to_all got Float [", n + 1, "]")));
    } else {
      CHECK(text != "nothing was thrown");
    }
    check_works(*communicator);
  }
}

TEST_CASE("gather and scatter along every dimension, with equal and with unequal sizes") {
  for (const auto& name : test::backends()) {
    const auto communicator = test::make_backend(name);
    const int n = communicator->size();
    const int rank = communicator->rank();
    for (const std::int64_t dim : {0, 1, 2, -1}) {
      std::vector<std::int64_t> sizes;
      std::vector<std::int64_t> shape{2, 3, 4};
      const auto along = static_cast<std::size_t>(dim < 0 ? dim + 3 : dim);
      std::int64_t total = 0;
      for (int peer = 0; peer < n; ++peer) total += sizes.emplace_back(peer % 3);
      shape[along] = total;
      const auto whole = at::arange(total * 24 / (dim == 0 ? 2 : dim == 1 ? 3 : 4)).to(at::kFloat).view(shape);
      std::int64_t begin = 0;
      for (int peer = 0; peer < rank; ++peer) begin += sizes[static_cast<std::size_t>(peer)];
      const auto mine = whole.narrow(dim, begin, sizes[static_cast<std::size_t>(rank)]);
      INFO(name << " along " << dim);
      CHECK(at::equal(comm::gather_along(*communicator, mine, dim, sizes), whole));

      const int root = n - 1;
      const auto part = at::empty(mine.sizes());
      comm::scatter_along(*communicator, part, rank == root ? whole : at::Tensor(), dim, sizes, root).wait();
      CHECK(at::equal(part, mine));

      shape[along] = 2 * n;
      const auto even = at::arange(at::empty(shape).numel()).to(at::kFloat).view(shape);
      const auto own = even.narrow(dim, 2 * rank, 2);
      CHECK(at::equal(comm::gather_along(*communicator, own, dim), even));
      CHECK(at::equal(comm::reduce_scatter_along(*communicator, even, dim, comm::ReduceOp::sum), own * n));
    }
  }
}

TEST_CASE("a rank whose tensor cannot be cut or has no such dimension leaves no other waiting") {
  for (const auto& name : test::backends()) {
    const auto communicator = test::make_backend(name);
    const int n = communicator->size();
    if (n > 1 && !communicator->traits().finds_mismatch) continue;  // all ranks must pass the same shape there
    INFO(name);
    const bool is_wrong = communicator->rank() == n - 1;
    CHECK_THROWS(comm::gather_along(*communicator, at::ones({2, 2}), is_wrong ? 5 : 0));
    CHECK_THROWS(
        comm::reduce_scatter_along(*communicator, at::ones({2 * n, 1}), is_wrong ? 5 : 0, comm::ReduceOp::sum));
    check_works(*communicator);
  }
}
