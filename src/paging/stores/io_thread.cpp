#include "paging/stores/io_thread.hpp"

#include <utility>

namespace hortator::paging {

IoThread::IoThread() : shared_(std::make_shared<Shared>()), thread_([shared = shared_] { work(*shared); }) {}

IoThread::~IoThread() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->is_ending = true;
  }
  shared_->changed.notify_all();
  thread_.join();
}

comm::Work IoThread::run(std::function<void()> job) {
  auto made = std::make_shared<Job>(Job{.run = std::move(job)});
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->queue.push_back(made);
  }
  shared_->changed.notify_all();
  return comm::Work([shared = shared_, made = std::move(made)] { wait(*shared, *made); });
}

void IoThread::run_when_idle(int number, std::function<void()> job) {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->idle_jobs.emplace_back(number, std::move(job));
  }
  shared_->changed.notify_all();
}

void IoThread::forget(int number) {
  const std::lock_guard lock(shared_->mutex);
  std::erase_if(shared_->idle_jobs, [number](const auto& waiting) { return waiting.first == number; });
}

void IoThread::wait(Shared& shared, const Job& job) {
  std::unique_lock lock(shared.mutex);
  shared.changed.wait(lock, [&] { return job.is_done; });
  if (job.error) std::rethrow_exception(job.error);
}

void IoThread::work(Shared& shared) {
  std::unique_lock lock(shared.mutex);
  while (true) {
    shared.changed.wait(lock, [&] { return shared.is_ending || !shared.queue.empty() || !shared.idle_jobs.empty(); });
    if (shared.queue.empty()) {
      if (shared.is_ending) return;
      const auto job = std::move(shared.idle_jobs.front().second);
      shared.idle_jobs.pop_front();
      lock.unlock();
      job();
      lock.lock();
      continue;
    }
    const auto job = shared.queue.front();
    lock.unlock();
    try {
      job->run();
    } catch (...) {
      job->error = std::current_exception();
    }
    job->run = {};  // destroy what it holds before its Work is woken
    lock.lock();
    job->is_done = true;
    shared.queue.pop_front();
    shared.changed.notify_all();
  }
}

}  // namespace hortator::paging
