// Cases that fail in each way in which one can, for the test of batch.sh. They are hidden: it selects them by their
// tag.
#include <fcntl.h>
#include <mpi.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "support/catch.hpp"

namespace {

int rank() {
  int number = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &number);
  return number;
}

}  // namespace

TEST_CASE("good, the first", "[.fault]") { CHECK(rank() >= 0); }
TEST_CASE("a check fails on one rank", "[.fault]") { CHECK(rank() != 1); }
TEST_CASE("good, after a failed check", "[.fault]") { CHECK(rank() >= 0); }
TEST_CASE("a requirement fails on one rank", "[.fault]") { REQUIRE(rank() != 1); }
TEST_CASE("one rank waits for ever", "[.fault]") {
  if (rank() == 1) pause();
  SUCCEED();
}
TEST_CASE("the program exits", "[.fault]") {
  if (rank() == 0) std::_Exit(0);
  SUCCEED();
}
TEST_CASE("a descriptor stays open", "[.fault]") { CHECK(open("/proc/self/status", O_RDONLY) >= 0); }
TEST_CASE("a thread stays", "[.fault]") {
  std::thread([] { pause(); }).detach();
  SUCCEED();
}
TEST_CASE("a message stays", "[.fault]") {
  const int value = 1;
  MPI_Request request = MPI_REQUEST_NULL;
  if (rank() == 0) MPI_Isend(&value, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, &request);
  SUCCEED();
}
TEST_CASE("good, the last: with a comma, \"quotes\" and [brackets]", "[.fault]") { CHECK(rank() >= 0); }
