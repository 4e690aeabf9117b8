#pragma once

#include <ATen/record_function.h>

namespace hortator::observe {

/// Counts floating-point operations during its lifetime: of matrix products, convolutions and attention, two for each
/// multiply-add. All other operators are negligible. Masked attention counts as unmasked. Covers this thread and the
/// backward passes that it starts. Only one counter may exist at a time; it costs some microseconds per operator.
class FlopCounter {
 public:
  FlopCounter();
  ~FlopCounter();
  FlopCounter(const FlopCounter&) = delete;
  FlopCounter& operator=(const FlopCounter&) = delete;

  double count() const;

 private:
  at::CallbackHandle handle_;
};

}  // namespace hortator::observe
