#pragma once

#include <functional>
#include <hortator/export.hpp>

namespace hortator {

/// Runs `function` on `ranks` ranks and returns when all have finished: for programs that are started without a
/// launcher, such as tools and interactive sessions.
///
/// The ranks are new processes of this program, started with the same arguments by `hortator launch`: each runs main()
/// up to this call, then `function` as the body of hortator::run, and ends. They run where `hortator launch` puts them:
/// on this host, on the hosts of HORTATOR_HOSTFILE, or in the job's allocation. Code before the call therefore runs in
/// each rank as well, code after it runs only here, and changes that `function` makes are not visible here.
///
/// Throws UsageError if the program is a rank already, or has used MPI or a CUDA device; Error with the exit code of
/// the rank that caused it if the ranks fail.
void HORTATOR_API launch(int ranks, const std::function<void()>& function);

}  // namespace hortator
