#pragma once

#include <ATen/record_function.h>

namespace hortator::observe {

/// Counts floating-point operations while it lives: those of matrix products, convolutions and attention, two for each
/// product that is added up. All others are as nothing beside them. Masked attention counts as if it were not. Of this
/// thread, and of the backward passes that it starts; one counter at a time; costs some microseconds an operator.
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
