#include "machine/races/race_detector.hpp"

#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("a finding names both operators, their streams and the kind of conflict") {
  machine::RaceDetector detector;
  machine::AccessHistory block;
  const auto use = [&](int stream, const char* name, std::size_t begin, std::size_t end, bool writes) {
    detector.submit(stream);
    detector.use(block, stream, {.name = name}, {begin, end}, writes);
  };
  use(1, "fill", 0, 8, true);
  use(1, "sum", 0, 8, false);
  CHECK(detector.take_findings().empty());
  use(2, "mul", 4, 12, false);
  CHECK(detector.take_findings() ==
        std::vector<std::string>{"Read of a write: 'mul' on stream 2 is not ordered after 'fill' on stream 1"});
  use(2, "copy", 8, 12, true);  // other bytes than those that were written
  CHECK(detector.take_findings().empty());
  use(3, "zero", 10, 11, true);
  CHECK(detector.take_findings() ==
        std::vector<std::string>{"Two writes: 'zero' on stream 3 is not ordered after 'copy' on stream 2",
                                 "Write over a read: 'zero' on stream 3 is not ordered after 'mul' on stream 2"});
  detector.order_host_after(detector.clock_of(1));
  detector.order_host_after(detector.clock_of(2));
  detector.order_host_after(detector.clock_of(3));
  use(4, "late", 0, 10, true);
  CHECK(detector.take_findings().empty());
}

TEST_CASE("a finding names timelines as they are called, and the places of both calls") {
  machine::RaceDetector detector;
  machine::AccessHistory block;
  detector.name_timeline(1, "the copy stream");
  const auto* const site = reinterpret_cast<const void*>(&std::abort);  // NOLINT: any address of code
  detector.submit(1);
  detector.use(block, 1, {.name = "copy", .site = static_cast<const char*>(site) + 1}, {0, 8}, true);
  detector.submit(2);
  detector.use(block, 2, {.name = "sum", .site = static_cast<const char*>(site) + 1}, {0, 8}, false);
  const auto findings = detector.take_findings();
  REQUIRE(findings.size() == 1);
  CHECK_THAT(findings.front(), StartsWith("Read of a write: 'sum' on stream 2, called at ") &&
                                   ContainsSubstring(", is not ordered after 'copy' on the copy stream, called at "));
}

TEST_CASE("uses that the host has waited for are forgotten, others are not") {
  machine::RaceDetector detector;
  machine::AccessHistory block;
  const auto read = [&](int stream, std::size_t byte) {
    detector.submit(stream);
    detector.use(block, stream, {.name = "read"}, {byte, byte + 1}, false);
  };
  for (std::size_t byte = 0; byte < 100; ++byte) read(1, byte);
  CHECK(block.reads.size() == 100);
  detector.order_host_after(detector.clock_of(1));
  read(2, 50);
  CHECK(block.reads.size() == 1);
  CHECK(detector.take_findings().empty());
  detector.submit(3);
  detector.use(block, 3, {.name = "write"}, {0, 100}, true);
  CHECK(detector.take_findings().size() == 1);
}

TEST_CASE("columns of a matrix are other bytes than its other columns") {
  machine::RaceDetector detector;
  machine::AccessHistory block;
  const auto use_columns = [&](int stream, std::size_t first, std::size_t width) {
    detector.submit(stream);
    detector.use(block, stream, {.name = "mul"}, {first, first + 90 + width, {.width = width, .period = 10}}, true);
  };
  use_columns(1, 0, 4);
  use_columns(2, 4, 6);
  CHECK(detector.take_findings().empty());
  use_columns(3, 3, 2);
  CHECK(detector.take_findings().size() == 2);
}
