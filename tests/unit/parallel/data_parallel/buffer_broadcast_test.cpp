#include "parallel/data_parallel/buffer_broadcast.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include "support/catch.hpp"
#include "unit/parallel/reducer_fixture.hpp"

using namespace hortator;

TEST_CASE("buffers of all types and layouts are broadcast from any rank in one message") {
  test::Log log;
  test::LazyCommunicator communicator(&log);
  const int rank = communicator.rank();
  for (int root = 0; root < communicator.size(); ++root) {
    std::vector<at::Tensor> buffers = {at::full({3}, rank + 1, at::kLong),
                                       at::full({5}, rank + 2.5, at::kFloat),
                                       at::full({1}, rank == root, at::kBool),
                                       at::full({}, rank + 3.25, at::kDouble),
                                       at::full({2, 3}, rank + 4, at::kFloat).t(),
                                       at::full({7, 4}, rank + 5, at::kHalf).slice(1, 0, 4, 2),
                                       at::empty({0}),
                                       at::full({3}, rank + 6, at::kComplexDouble)};
    parallel::BufferBroadcast broadcast(buffers, communicator);
    for (int round = 0; round < 2; ++round) {
      log.clear();
      broadcast.send_from(root);
      CHECK(log == test::Log{"broadcast"});
      const std::vector<double> expected = {root + 1.0, root + 2.5, 1, root + 3.25,
                                            root + 4.0, root + 5.0, 0, root + 6.0};
      for (std::size_t i = 0; i < buffers.size(); ++i)
        CHECK(at::equal(buffers[i], at::full_like(buffers[i], expected[i])));
      for (std::size_t i = 0; i < buffers.size(); ++i) buffers[i].fill_(rank == root ? expected[i] : 0);
    }
  }
}

TEST_CASE("a buffer that has changed its size or type is sent with the new one") {
  test::LazyCommunicator communicator;
  auto buffer = at::full({3}, communicator.rank(), at::kFloat);
  parallel::BufferBroadcast broadcast({buffer}, communicator);
  broadcast.send_from(0);
  buffer.set_data(at::full({4, 2}, communicator.rank() + 1, at::kDouble));
  broadcast.send_from(0);
  CHECK(at::equal(buffer, at::full({4, 2}, 1, at::kDouble)));
}

TEST_CASE("broadcasting buffers does not disturb a backward that follows") {
  test::LazyCommunicator communicator;
  auto buffer = at::full({3}, 2.0);
  auto x = test::parameter({3});
  const auto loss = (x * buffer).sum();
  parallel::BufferBroadcast({buffer}, communicator).send_from(0);
  CHECK_NOTHROW(loss.backward());
}
