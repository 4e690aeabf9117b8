#pragma once

#include <functional>
#include <hortator/detail/built_with.hpp>
#include <hortator/export.hpp>

namespace hortator {

/// Runs the program's `body` and returns the exit code for main: `int main(int argc, char** argv) { return
/// hortator::run(argc, argv, [] {...}); }`
///
/// An exception on any rank ends the whole job within two seconds, with one line that names the rank, its host and the
/// problem; failure.json in the run folder has the same facts. The exit code is 2 for a UsageError and 1 for any other
/// exception. If the body returns, it is 0, or 75 ("stopped, to be continued") if Accelerator::should_stop() was true
/// in it; outcome.json in the run folder records that. A last checkpoint that could not be written at the body's end
/// counts as an exception. Starts MPI unless the application has, and finalises it if it was started here.
///
/// Leave `built` to its default, which is what the program was compiled with: if its LibTorch or C++ library is not
/// this library's, run() fails and names both.
/// @collective over the world.
int HORTATOR_API run(int argc, char** argv, const std::function<void()>& body, const BuiltWith& built = {});

}  // namespace hortator
