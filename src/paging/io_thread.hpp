#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "comm/work.hpp"

namespace hortator::paging {

/// Runs what it is given one after the other, in order, on a thread of its own. When it dies all of that is done.
class IoThread {
 public:
  IoThread();
  ~IoThread();
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;

  /// The Work throws what the job threw.
  comm::Work run(std::function<void()> job);
  /// For a moment when there is nothing else to do, if one comes before it is forgotten. It must not throw.
  void run_when_idle(int number, std::function<void()> job);
  void forget(int number);

 private:
  struct Job {
    std::function<void()> run;
    bool is_done = false;
    std::exception_ptr error = {};
  };
  /// What outlives the thread if a Work does.
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::shared_ptr<Job>> queue;  ///< the first one is running
    std::deque<std::pair<int, std::function<void()>>> for_idleness;
    bool is_ending = false;
  };

  static void work(Shared& shared);
  static void wait(Shared& shared, const Job& job);

  std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace hortator::paging
