#pragma once

#include <optional>

namespace hortator::machine {

/// The number of threads that OpenMP would use for the next parallel region of this thread, as omp_get_max_threads()
/// says. Nothing in a process without OpenMP.
std::optional<int> openmp_threads() noexcept;

/// Sets it, as omp_set_num_threads() does. LibTorch computes with as many. Does nothing in a process without OpenMP.
void set_openmp_threads(int threads) noexcept;

/// Puts back OpenMP's number of threads at its end.
class OpenmpThreads {
 public:
  OpenmpThreads() noexcept : before_(openmp_threads()) {}
  /// Until then, this thread computes with `threads`.
  explicit OpenmpThreads(int threads) noexcept : OpenmpThreads() {
    if (before_ != threads) set_openmp_threads(threads);
  }
  ~OpenmpThreads() {
    if (before_) set_openmp_threads(*before_);
  }
  OpenmpThreads(const OpenmpThreads&) = delete;
  OpenmpThreads& operator=(const OpenmpThreads&) = delete;

 private:
  std::optional<int> before_;
};

}  // namespace hortator::machine
