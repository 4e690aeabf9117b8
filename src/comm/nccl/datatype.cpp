#include "comm/nccl/datatype.hpp"

#include <array>
#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::comm {
namespace {

struct NcclRow {
  at::ScalarType type;
  at::ScalarType carrier;
  ncclDataType_t nccl;
  int scalars = 1;
};

constexpr std::array<NcclRow, 12> nccl_types = {{
    {at::kFloat, at::kFloat, ncclFloat32},
    {at::kDouble, at::kDouble, ncclFloat64},
    {at::kHalf, at::kHalf, ncclFloat16},
    {at::kBFloat16, at::kBFloat16, ncclBfloat16},
    {at::kByte, at::kByte, ncclUint8},
    {at::kChar, at::kChar, ncclInt8},
    {at::kShort, at::kInt, ncclInt32},  // NCCL has none of 16 bits
    {at::kInt, at::kInt, ncclInt32},
    {at::kLong, at::kLong, ncclInt64},
    {at::kBool, at::kBool, ncclUint8},
    {at::kComplexFloat, at::kComplexFloat, ncclFloat32, 2},
    {at::kComplexDouble, at::kComplexDouble, ncclFloat64, 2},
}};

// Booleans are bytes of 0 and 1: "any" is their maximum, "all" their minimum.
ncclRedOp_t logical(ReduceOp op) { return op == ReduceOp::sum || op == ReduceOp::max ? ncclMax : ncclMin; }

ncclRedOp_t arithmetic(ReduceOp op) {
  constexpr ncclRedOp_t ops[] = {ncclSum, ncclAvg, ncclMax, ncclMin, ncclProd};
  return ops[static_cast<int>(op)];
}

}  // namespace

NcclReduction nccl_reduction(at::ScalarType type, ReduceOp op) {
  for (const auto& row : nccl_types) {
    if (row.type != type) continue;
    if (row.scalars == 2 && op != ReduceOp::sum) {
      throw UsageError(
          {.what = text::concat("Cannot compute the ", name(op), " of tensors of type ", type),
           .why = "NCCL has no complex numbers; only a sum can be computed on their real and imaginary parts",
           .hint = "gather them and reduce on each rank"});
    }
    return {row.carrier, row.nccl, type == at::kBool ? logical(op) : arithmetic(op), row.scalars};
  }
  throw UsageError({.what = text::concat("Cannot reduce a tensor of type ", type),
                    .why = "NCCL has no such type",
                    .hint = "convert it first, to float32 or bfloat16 for example"});
}

}  // namespace hortator::comm
