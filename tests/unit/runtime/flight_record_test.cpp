#include "runtime/identity/flight_record.hpp"

#include <string>

#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::runtime;

namespace {

std::string row_of(int rank, const activity::FlightEntry& entry) {
  auto row = flight_row(rank, entry);
  return std::string(row.row());
}

}  // namespace

TEST_CASE("a row of the flight survives a round trip") {
  const activity::FlightEntry entry{
      .operation = {.name = "all_reduce", .bytes = 4096, .communicator = 0xabcdef, .sequence = 41, .size = 8},
      .begun = 1790000000.000125,
      .ended = 1790000001.5};
  const auto row = row_of(3, entry);
  CHECK(row.size() == flight_row_bytes);
  CHECK(row.back() == '\n');
  const auto records = parse_flight(row);
  REQUIRE(records.size() == 1);
  CHECK(records[0].rank == 3);
  CHECK(records[0].name == "all_reduce");
  CHECK(records[0].bytes == 4096);
  CHECK(records[0].group == "abcdef");
  CHECK(records[0].size == 8);
  CHECK(records[0].sequence == 41);
  CHECK(records[0].begun == Approx(1790000000.000125).margin(2e-6).epsilon(0));
  CHECK(records[0].ended == Approx(1790000001.5).margin(2e-6).epsilon(0));
}

TEST_CASE("times of a flight's row have all their digits") {
  for (const double fraction : {0.0, 0.000001, 0.000099, 0.05, 0.5, 0.999999}) {
    const auto records = parse_flight(row_of(0, {.begun = 1790000000 + fraction}));
    REQUIRE(records.size() == 1);
    CHECK(records[0].begun == Approx(1790000000 + fraction).margin(1.5e-6).epsilon(0));
    CHECK(records[0].ended == 0);
  }
}

TEST_CASE("the longest values fit into a row of the flight") {
  const activity::FlightEntry entry{.operation = {.name = "12345678901234567890123",
                                                  .bytes = ~std::uint64_t{0},
                                                  .communicator = ~std::uint64_t{0},
                                                  .sequence = ~std::uint64_t{0},
                                                  .size = 2147483647},
                                    .begun = 17900000000.999999,
                                    .ended = 17900000000.999999};
  const auto records = parse_flight(row_of(2147483647, entry));
  REQUIRE(records.size() == 1);
  CHECK(records[0].group == "ffffffffffffffff");
  CHECK(records[0].sequence == ~std::uint64_t{0});
}

TEST_CASE("blank, missing and invalid rows of a flight are skipped") {
  const activity::FlightEntry entry{.operation = {.name = "barrier", .communicator = 1, .sequence = 2, .size = 2},
                                    .begun = 1790000000};
  FlightRow blank;
  const std::string hole(flight_row_bytes, '\0');
  std::string invalid(flight_row_bytes, ' ');
  invalid.replace(0, 10, R"({"rank":1})");
  const auto content = hole + std::string(blank.row()) + invalid + row_of(5, entry) + "{\"rank\":";
  const auto records = parse_flight(content);
  REQUIRE(records.size() == 1);
  CHECK(records[0].rank == 5);
}
