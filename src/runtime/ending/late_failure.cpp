#include "runtime/ending/late_failure.hpp"

#include <mutex>
#include <utility>

namespace hortator::runtime {
namespace {

std::mutex late_failure_mutex;
std::exception_ptr late_failure;

}  // namespace

void note_late_failure(const std::exception_ptr& thrown) {
  const std::scoped_lock lock(late_failure_mutex);
  if (!late_failure) late_failure = thrown;
}

void forget_late_failure() {
  const std::scoped_lock lock(late_failure_mutex);
  late_failure = nullptr;
}

void throw_late_failure() {
  const std::scoped_lock lock(late_failure_mutex);
  if (late_failure) std::rethrow_exception(std::exchange(late_failure, nullptr));
}

}  // namespace hortator::runtime
