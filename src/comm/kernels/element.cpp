#include "comm/kernels/element.hpp"

#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::comm {

kernels::Element element_of(at::ScalarType type) {
  using kernels::Element;
  switch (type) {
    case at::kFloat:
      return Element::f32;
    case at::kDouble:
      return Element::f64;
    case at::kHalf:
      return Element::f16;
    case at::kBFloat16:
      return Element::bf16;
    case at::kByte:
      return Element::u8;
    case at::kChar:
      return Element::i8;
    case at::kShort:
      return Element::i16;
    case at::kInt:
      return Element::i32;
    case at::kLong:
      return Element::i64;
    case at::kBool:
      return Element::boolean;
    case at::kComplexFloat:
      return Element::c64;
    case at::kComplexDouble:
      return Element::c128;
    default:
      throw UsageError({.what = text::concat("A tensor of type ", type, " was to be reduced"),
                        .why = "there is no arithmetic for it",
                        .hint = "convert it first"});
  }
}

void check_reducible(at::ScalarType type, ReduceOp op) {
  element_of(type);  // throws
  if (op == ReduceOp::mean && !at::isFloatingType(type) && !at::isComplexType(type)) {
    throw UsageError({.what = text::concat("A mean of ", type, " was asked for"),
                      .why = "whole numbers have no exact mean",
                      .hint = "convert to a floating type first, or reduce with sum"});
  }
  if ((op == ReduceOp::max || op == ReduceOp::min) && at::isComplexType(type)) {
    throw UsageError({.what = text::concat("The ", name(op), " of ", type, " was asked for"),
                      .why = "complex numbers have no order",
                      .hint = "reduce their absolute values"});
  }
}

}  // namespace hortator::comm
