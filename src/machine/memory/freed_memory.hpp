#pragma once

namespace hortator::machine {

/// Makes glibc keep the memory that the main thread frees, and up to 64 MiB for each other thread. A training step
/// frees as much as it allocates; by default glibc returns much of that to the system and gets it back page by page in
/// the next step. Blocks above 32 MiB are still returned. Changes nothing and returns false when the environment has
/// tuned glibc's allocator, or without glibc.
bool keep_freed_memory();

/// Makes glibc return blocks of 256 KiB and more, at the price of page faults. It would keep several times what a step
/// uses: LibTorch's aligned blocks do not fit into holes of their size. Changes nothing in the same cases.
bool return_freed_blocks();

/// Returns the memory that glibc keeps for the main thread to the system. Takes about 0.2 s per GB: do not call it in a
/// training step.
void return_freed_memory() noexcept;

}  // namespace hortator::machine
