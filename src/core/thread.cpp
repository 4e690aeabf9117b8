#include "core/thread.hpp"

#include <pthread.h>

#include <csignal>

namespace hortator::core {

std::thread start_without_signals(const char* name, const std::function<void()>& work) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(work);
  pthread_setname_np(thread.native_handle(), name);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace hortator::core
