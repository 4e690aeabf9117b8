#include "comm/mpi/mpi_datatype.hpp"

#include <array>
#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::comm {
namespace {

struct Row {
  at::ScalarType type;
  MPI_Datatype mpi;
};

// 16-bit floats travel as their bits; only reductions need their values.
const std::array<Row, 12>& table() {
  static const std::array<Row, 12> rows = {{
      {at::kFloat, MPI_FLOAT},
      {at::kDouble, MPI_DOUBLE},
      {at::kHalf, MPI_UINT16_T},
      {at::kBFloat16, MPI_UINT16_T},
      {at::kByte, MPI_UINT8_T},
      {at::kChar, MPI_INT8_T},
      {at::kShort, MPI_INT16_T},
      {at::kInt, MPI_INT32_T},
      {at::kLong, MPI_INT64_T},
      {at::kBool, MPI_C_BOOL},
      {at::kComplexFloat, MPI_C_FLOAT_COMPLEX},
      {at::kComplexDouble, MPI_C_DOUBLE_COMPLEX},
  }};
  return rows;
}

}  // namespace

MPI_Datatype mpi_datatype(at::ScalarType type) {
  for (const auto& row : table()) {
    if (row.type == type) return row.mpi;
  }
  throw UsageError({.what = text::concat("A tensor of type ", type, " was to be sent"),
                    .why = "MPI has no such type",
                    .hint = "view it as uint8, or convert it first"});
}

MPI_Op mpi_operation(at::ScalarType type, ReduceOp op) {
  const bool logical = type == at::kBool;
  switch (op) {
    case ReduceOp::max:
      return logical ? MPI_LOR : MPI_MAX;
    case ReduceOp::min:
      return logical ? MPI_LAND : MPI_MIN;
    case ReduceOp::product:
      return logical ? MPI_LAND : MPI_PROD;
    case ReduceOp::sum:
    case ReduceOp::mean:
      break;
  }
  return logical ? MPI_LOR : MPI_SUM;
}

at::ScalarType reduction_type(at::ScalarType type) {
  return type == at::kHalf || type == at::kBFloat16 ? at::kFloat : type;
}

}  // namespace hortator::comm
