#include "core/activity/flight.hpp"

#include <atomic>
#include <thread>

#include "support/catch.hpp"

using namespace hortator::activity;

namespace {

FlightLog flight_now() {
  FlightLog flight;
  read_flight(flight);
  return flight;
}

FlightEntry newest_of(const FlightLog& flight) {
  REQUIRE(flight.count > 0);
  return flight.entries[flight.count - 1];
}

}  // namespace

TEST_CASE("the flight has a thread's stays in collectives with their times") {
  const Membership membership(71, 70, 3);
  {
    const Collective here(membership, "all_gather", 128);
    const auto inside = newest_of(flight_now());
    CHECK(inside.operation.name.text() == "all_gather");
    CHECK(inside.operation.bytes == 128);
    CHECK(inside.operation.communicator == 71);
    CHECK(inside.operation.sequence == 1);
    CHECK(inside.operation.size == 3);
    CHECK(inside.begun > 1.7e9);
    CHECK(inside.ended == 0);
  }
  const auto after = newest_of(flight_now());
  CHECK(after.ended >= after.begun);
  CHECK(after.ended < after.begun + 60);
}

TEST_CASE("nested collectives and waits without an operation are not in the flight") {
  const Membership outer(72, 72, 2);
  const Membership inner(73, 72, 2);
  {
    const Collective here(outer, "barrier");
    const Collective nested(inner, "all_reduce");
    const Collective nothing{Operation()};
  }
  { const Collective nothing{Operation()}; }
  CHECK(newest_of(flight_now()).operation.communicator == 72);
}

TEST_CASE("the flight holds the newest stays, the oldest first") {
  const Membership membership(74, 74, 2);
  for (std::size_t i = 0; i < 3 * flight_length; ++i) const Collective here(membership, "all_reduce");
  const auto flight = flight_now();
  REQUIRE(flight.count == flight_length);
  for (std::size_t i = 0; i < flight.count; ++i) {
    CHECK(flight.entries[i].operation.sequence == 2 * flight_length + i + 1);
    CHECK(flight.entries[i].ended > 0);
  }
}

TEST_CASE("a reader of the flight never sees a mixture of two stays") {
  std::atomic<bool> ends = false;
  std::thread writer([&] {
    while (!ends) {
      { const Collective one(Operation{.name = "one", .bytes = 1, .communicator = 1, .family = 1, .sequence = 1}); }
      { const Collective two(Operation{.name = "two", .bytes = 2, .communicator = 2, .family = 2, .sequence = 2}); }
    }
  });
  for (int i = 0; i < 2000; ++i) {
    const auto flight = flight_now();
    for (std::size_t at = 0; at < flight.count; ++at) {
      const auto& operation = flight.entries[at].operation;
      if (operation.bytes != 1 && operation.bytes != 2) continue;
      const bool whole = operation.name.text() == (operation.bytes == 1 ? "one" : "two") &&
                         operation.sequence == operation.bytes && operation.communicator == operation.bytes;
      if (!whole) FAIL("torn: " << operation.name.text() << " " << operation.bytes << " " << operation.sequence);
    }
  }
  ends = true;
  writer.join();
}
