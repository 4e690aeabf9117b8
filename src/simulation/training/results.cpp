#include "simulation/training/results.hpp"

#include <c10/core/ScalarType.h>

#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::simulation {

void require_fit(const at::Tensor& result, const at::Tensor& to, const char* what) {
  if (result.sizes() != to.sizes()) {
    throw UsageError({.what = text::concat("The ", what, " has the shape ", result.sizes(), ", its array ", to.sizes()),
                      .hint = "bind an array of that shape"});
  }
  if (!c10::canCast(result.scalar_type(), to.scalar_type())) {
    throw UsageError(
        {.what = text::concat("The ", what, " has the type ", result.scalar_type(), ", its array ", to.scalar_type()),
         .why = "its fractions or imaginary parts would be lost",
         .hint = "bind an array of floating-point numbers, or of complex ones"});
  }
}

void write_result(const at::Tensor& result, const at::Tensor& to, const char* what) {
  require_fit(result, to, what);
  at::Tensor(to).copy_(result);
}

}  // namespace hortator::simulation
