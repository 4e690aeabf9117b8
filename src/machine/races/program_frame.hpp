#pragma once

namespace hortator::machine {

/// The place from which LibTorch was called, as the return address of the innermost call on the stack that comes from
/// neither LibTorch nor the functions that LibTorch has called in turn. Null: there is none, as in threads of backward.
/// Costs microseconds.
const void* program_frame();

}  // namespace hortator::machine
