#include "runtime/watchdog/living.hpp"

#include <mutex>
#include <set>

#include "runtime/watchdog/watchdog.hpp"

namespace hortator::runtime {
namespace {

struct Living {
  ~Living() {
    const std::scoped_lock lock(mutex);
    for (auto* watchdog : all) watchdog->leave_early();
    all.clear();
  }
  std::mutex mutex;
  std::set<Watchdog*> all;
};

Living& living() {
  static Living instance;
  return instance;
}

}  // namespace

void add_living(Watchdog* watchdog) {
  const std::scoped_lock lock(living().mutex);
  living().all.insert(watchdog);
}

bool remove_living(Watchdog* watchdog) {
  const std::scoped_lock lock(living().mutex);
  return living().all.erase(watchdog) == 1;
}

void report_killed_peers(bool launcher_reports) {
  const std::scoped_lock lock(living().mutex);
  for (const auto* watchdog : living().all) watchdog->report_killed_peer(launcher_reports);
}

}  // namespace hortator::runtime
