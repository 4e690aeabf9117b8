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

/// Runs jobs one after the other, in order, on a thread of its own. The destructor waits for all of them.
class IoThread {
 public:
  IoThread();
  ~IoThread();
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;

  /// Queues a job. The Work throws what the job threw.
  comm::Work run(std::function<void()> job);
  /// Queues a job for when no other job is queued; forget() removes it if it has not started. It must not throw.
  void run_when_idle(int number, std::function<void()> job);
  void forget(int number);

 private:
  struct Job {
    std::function<void()> run;
    bool is_done = false;
    std::exception_ptr error = {};
  };
  /// The state that Works share with the thread; outlives the thread if a Work does.
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::shared_ptr<Job>> queue;  ///< the first one is running
    std::deque<std::pair<int, std::function<void()>>> idle_jobs;
    bool is_ending = false;
  };

  static void work(Shared& shared);
  static void wait(Shared& shared, const Job& job);

  std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace hortator::paging
