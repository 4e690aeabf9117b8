#include "paging/stores/io_thread.hpp"

#include <future>
#include <vector>

#include "support/catch.hpp"

namespace hortator::paging {

TEST_CASE("Idle jobs run after all others, and can be forgotten", "[io_thread]") {
  std::promise<void> gate;
  std::vector<int> order;
  std::promise<void> idle_ran;
  {
    IoThread thread;
    auto first = thread.run([&] { gate.get_future().wait(); });
    thread.run_when_idle(6, [&] { order.push_back(6); });
    thread.run_when_idle(3, [&] {
      order.push_back(3);
      idle_ran.set_value();
    });
    thread.forget(6);
    auto second = thread.run([&] { order.push_back(1); });
    auto third = thread.run([&] { order.push_back(2); });
    gate.set_value();
    third.wait();
    second.wait();
    first.wait();
    idle_ran.get_future().wait();
  }
  CHECK(order == std::vector{1, 2, 3});
}

}  // namespace hortator::paging
