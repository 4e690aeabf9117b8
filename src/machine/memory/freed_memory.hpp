#pragma once

namespace hortator::machine {

/// From now on glibc keeps what the main thread frees, and up to 64 MiB for each other thread. A training step frees as
/// much as it takes; by default much of that goes to the system and comes back page by page in the next step. Blocks
/// above 32 MiB still go. Nothing changes, and it returns false, where the user's environment has tuned glibc's
/// allocator, or there is no glibc.
bool keep_freed_memory();

/// What glibc keeps for the main thread goes back to the system. Not in a step: it takes some 0.2 s a GB.
void return_freed_memory() noexcept;

}  // namespace hortator::machine
