// What the watchdog sees of operations that the device was given.
#include <chrono>
#include <thread>

#include "backends.hpp"
#include "comm/decorators/watched_communicator.hpp"
#include "core/activity/activity.hpp"

using namespace hortator;
using namespace std::chrono_literals;
using comm::ReduceOp;

namespace {

bool comes_true(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + 5s;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
}

using activity::on_device;
using test::StandStill;

// Whether the watchdog counts the time.
bool device_waits() { return activity::view_with_device().threads.back().inside; }

comm::WatchedCommunicator watched_nccl() {
  auto nccl = test::make_nccl();
  const int size = nccl->size();
  return {std::move(nccl), activity::Membership(77, 76, size)};
}

}  // namespace

TEST_CASE("the watchdog sees when the device reaches an operation and when it has finished it") {
  const test::CleanMock mock;
  auto communicator = watched_nccl();
  auto tensor = at::ones({4});
  const StandStill still;
  communicator.all_reduce(tensor, ReduceOp::sum).wait();  // the host continues
  communicator.broadcast(tensor, 0).wait();
  REQUIRE(comes_true([] { return on_device().has_value(); }));
  CHECK(on_device()->operation.name.text() == "all_reduce");
  CHECK(on_device()->operation.bytes == 16);
  CHECK(on_device()->operation.communicator == 77);
  CHECK(on_device()->operation.sequence == 1);
  CHECK_FALSE(on_device()->is_its_turn);
  CHECK_FALSE(device_waits());
  StandStill::go_on_by(1);
  CHECK(comes_true([] { return on_device()->is_its_turn; }));
  CHECK(on_device()->operation.sequence == 1);
  CHECK(device_waits());
  StandStill::go_on_by(1);
  CHECK(comes_true([] { return on_device()->operation.sequence == 2; }));
  CHECK_FALSE(device_waits());
  StandStill::go_on_by(2);
  CHECK(comes_true([] { return !on_device(); }));
  CHECK_FALSE(device_waits());
}

TEST_CASE("an operation that is not watched is not recorded") {
  const test::CleanMock mock;
  const auto communicator = test::make_nccl();
  auto tensor = at::ones({4});
  const StandStill still;
  test::clear_trace();
  communicator->all_reduce(tensor, ReduceOp::sum).wait();
  const auto lines = test::trace();
  CHECK(std::count(lines.begin(), lines.end(), "mark") == 1);
  std::this_thread::sleep_for(250ms);
  CHECK_FALSE(on_device());
}

TEST_CASE("an operation within another one is reported as the outer one, which the ranks count") {
  const test::CleanMock mock;
  auto communicator = watched_nccl();
  const activity::Membership outer(99, 98, communicator.size());
  auto tensor = at::ones({4});
  const StandStill still;
  {
    const activity::Collective here(outer, "outer");
    communicator.all_reduce(tensor, ReduceOp::sum).wait();
  }
  REQUIRE(comes_true([] { return on_device().has_value(); }));
  CHECK(on_device()->operation.communicator == 99);
}
