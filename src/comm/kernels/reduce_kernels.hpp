#pragma once

#include <cstddef>
#include <span>

#include "comm/reduce_op.hpp"

/// Reductions over several arrays in memory, with the widest vectors that the CPU has. Sees no LibTorch.
namespace hortator::comm::kernels {

enum class Element { f32, f64, f16, bf16, u8, i8, i16, i32, i64, boolean, c64, c128 };

std::size_t size_of(Element element);

/// 16-bit floats are reduced in 32 bits; everything else in its own type.
struct Reduction {
  Element element = Element::f32;
  ReduceOp op = ReduceOp::sum;
  int divisor = 1;  ///< of a mean: the number of arrays that the sum is made of in the end
};

/// Writes the elementwise reduction of the inputs, in their order and rounded once, to each output: the same bits on
/// every machine. An output may be one of the inputs. There is at least one input.
using Kernel = void (*)(const Reduction& what, std::span<const std::byte* const> inputs,
                        std::span<std::byte* const> outputs, std::size_t elements);

/// The kernel for this CPU: chosen at run time, so that one library serves all nodes of a machine.
Kernel best_kernel();

Kernel portable_kernel();
/// Null where the compiler or the CPU has no such instructions.
Kernel avx2_kernel();
Kernel avx512_kernel();

}  // namespace hortator::comm::kernels
