#pragma once

#include <c10/core/Stream.h>

#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace hortator::test {

/// Orders the work of streams, but for one of its calls, which does nothing.
class Ordering {
 public:
  static constexpr int nothing = -1;
  explicit Ordering(int left_out) : left_out_(left_out) {}

  void after(const c10::Stream& first, const c10::Stream& second);  ///< later work of `second` waits for `first`
  void keep(const at::Tensor& tensor, const c10::Stream& stream);   ///< until the stream has passed its release
  void host_waits(const c10::Stream& stream);

  int calls() const { return calls_; }

 private:
  bool is_done() { return calls_++ != left_out_; }

  int left_out_;
  int calls_ = 0;
};

struct RaceProgram {
  std::string name;
  std::function<void(Ordering&)> run;
};

std::vector<RaceProgram> race_programs();
/// The number of orderings that a program needs.
int needed_orderings(const RaceProgram& program);
void wait_for_all();

}  // namespace hortator::test
