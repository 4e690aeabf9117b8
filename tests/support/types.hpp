#pragma once

#include <c10/core/ScalarType.h>

namespace hortator::test {

/// All types that files can store.
constexpr at::ScalarType stored_types[] = {at::kBool,
                                           at::kByte,
                                           at::kChar,
                                           at::kUInt16,
                                           at::kShort,
                                           at::kUInt32,
                                           at::kInt,
                                           at::kUInt64,
                                           at::kLong,
                                           at::kFloat8_e5m2,
                                           at::kFloat8_e4m3fn,
                                           at::kFloat8_e5m2fnuz,
                                           at::kFloat8_e4m3fnuz,
                                           at::kHalf,
                                           at::kBFloat16,
                                           at::kFloat,
                                           at::kDouble,
                                           at::kComplexHalf,
                                           at::kComplexFloat,
                                           at::kComplexDouble};

}  // namespace hortator::test
