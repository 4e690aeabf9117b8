#pragma once

#include <functional>
#include <hortator/export.hpp>

namespace hortator {

/// Runs `function` on `ranks` ranks, and returns when all have finished: for programs that are otherwise started by
/// themselves, such as tools and interactive sessions.
///
/// The ranks are this program, started anew with the same arguments by `hortator launch`: each runs main() up to this
/// call, then `function` as the body of hortator::run, and ends. They are where `hortator launch` puts them: here, on
/// the hosts of HORTATOR_HOSTFILE, or in the job's allocation. What stands before the call thus happens in each rank as
/// well, what stands behind it happens here alone, and what `function` changes is not seen here.
///
/// Throws UsageError where the program is a rank already, or has used MPI or a CUDA device; Error with the exit code of
/// the guilty rank when the ranks fail.
void HORTATOR_API launch(int ranks, const std::function<void()>& function);

}  // namespace hortator
