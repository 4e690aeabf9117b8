// Messages between neighbours in a ring.
#include "mpi/messages.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "support/catch.hpp"

using hortator::mpi::Communicator;
using hortator::mpi::Messages;

namespace {

using Numbers = std::vector<std::int64_t>;

void send(Messages& messages, Messages::Peer to, int tag, const Numbers& numbers) {
  const auto kept = std::make_shared<const Numbers>(numbers);
  messages.send(to, tag, std::as_bytes(std::span(*kept)), kept);
}

Numbers receive(Messages& messages, Messages::Peer from, int tag, std::size_t count) {
  Numbers numbers(count, -1);
  messages.receive(from, tag, std::as_writable_bytes(std::span(numbers)));
  return numbers;
}

}  // namespace

TEST_CASE("messages go to both neighbours of a ring, and those of a tag keep their order") {
  const auto world = Communicator::world();
  Messages messages(world);
  const int rank = world.rank(), ranks = world.size();
  CHECK(messages.rank_of(Messages::Peer::next) == (rank + 1) % ranks);
  CHECK(messages.rank_of(Messages::Peer::previous) == (rank + ranks - 1) % ranks);
  for (const std::size_t count : {std::size_t{1}, std::size_t{100000}}) {  // sent at once, and when it is received
    send(messages, Messages::Peer::next, 0, Numbers(count, rank));
    send(messages, Messages::Peer::next, 0, Numbers(count, rank + 100));
    send(messages, Messages::Peer::next, 2, Numbers(count, rank + 200));
    send(messages, Messages::Peer::previous, 1, Numbers(count, rank + 300));
    const auto before = (rank + ranks - 1) % ranks, after = (rank + 1) % ranks;
    CHECK(receive(messages, Messages::Peer::previous, 2, count) == Numbers(count, before + 200));
    CHECK(receive(messages, Messages::Peer::next, 1, count) == Numbers(count, after + 300));
    CHECK(receive(messages, Messages::Peer::previous, 0, count) == Numbers(count, before));
    CHECK(receive(messages, Messages::Peer::previous, 0, count) == Numbers(count, before + 100));
    messages.finish();
  }
}

TEST_CASE("bytes are released when they have left, and empty messages do not travel") {
  Messages messages(Communicator::world());
  const auto bytes = std::make_shared<const Numbers>(100000, 7);
  messages.send(Messages::Peer::next, 0, std::as_bytes(std::span(*bytes)), bytes);
  CHECK(receive(messages, Messages::Peer::previous, 0, 100000) == *bytes);
  messages.finish();
  CHECK(bytes.use_count() == 1);
  send(messages, Messages::Peer::next, 0, {});
  CHECK(receive(messages, Messages::Peer::previous, 0, 0).empty());
  messages.finish();
}
